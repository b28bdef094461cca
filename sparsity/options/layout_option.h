// LayoutOption: the layout in which an algorithm stores its parameters.
#pragma once

#include <string>

#include "lacuna/framework/config/config.h"
#include "lacuna/framework/config/pattern_shape.h"
#include "lacuna/framework/layouts/layout.h"
#include "lacuna/framework/param/parameter.h"

namespace lacuna {

/// A layout for every parameter, or the one that is fastest for each.
class LayoutOption {
 public:
  /// "auto" (the default): the choice of the cost model for each pattern, and masked for parameters
  /// that neither linear() nor a convolution uses. "masked", "csr"; "dense": dense products, as in
  /// masked; one that was added by its name. *Errors:* ConfigError with the nearest name.
  LayoutOption(std::string name = "auto");  // NOLINT: a name is an option
  LayoutOption(const char* name) : LayoutOption(std::string(name)) {}
  /// A user's layout, or a built-in one.
  LayoutOption(const Layout& layout);  // NOLINT: a layout is an option
  /// The key `layout` of an entry. "nm" and "block" mean the layout for its pattern. *Errors:*
  /// ConfigError, also if their type differs from that of the pattern.
  static LayoutOption from_config(const Config& entry,
                                  const PatternShape& pattern = PatternShape());

  const std::string& name() const { return name_; }
  bool is_auto() const { return layout_ == nullptr; }
  /// *Errors:* ConfigError if this layout does not support the parameter's use (Parameter::use):
  /// weights of linear layers support all layouts, those of convolutions csr and masked, others
  /// only masked.
  void require_fit(const Parameter& parameter) const;
  /// The requested layout. *Requires* !is_auto().
  const Layout& choose() const { return *layout_; }

 private:
  std::string name_;
  const Layout* layout_ = nullptr;  // null: auto
};

}  // namespace lacuna
