#include "lacuna/sparsity/options/layout_option.h"

#include <utility>
#include <vector>

#include "lacuna/framework/config/names.h"
#include "lacuna/framework/core/error.h"
#include "lacuna/framework/layouts/layout_registry.h"

namespace lacuna {

LayoutOption::LayoutOption(std::string name) : name_(std::move(name)) {
  const std::vector<std::string> names = {"auto", "masked", "csr", "dense"};
  if (name_ == "csr") {
    layout_ = &csr_layout();
  } else if (name_ == "masked" || name_ == "dense") {
    layout_ = &masked_layout();
  } else if (name_ != "auto") {
    layout_ = find_layout(name_);  // a user's
    if (layout_ != nullptr) return;
    if (name_ == "nm" || name_ == "block") {
      throw ConfigError("layout " + name_ +
                        " needs a pattern of its type; give auto, masked or csr here");
    }
    throw ConfigError("unknown layout '" + name_ + "'; " + suggest_name(name_, names));
  }
}

LayoutOption::LayoutOption(const Layout& layout)
    : name_(layout.name()), layout_(&layout == &dense_layout() ? &masked_layout() : &layout) {}

LayoutOption LayoutOption::from_config(const Config& entry, const PatternShape& pattern) {
  const auto name = entry.get<std::string>("layout", "auto");
  if (pattern.is_structured() && (name == "nm" || name == "block")) {
    if ((name == "nm") == pattern.is_nm()) return LayoutOption(layout_for(pattern));
    entry.get("layout").error("layout " + name + " needs a pattern of its type, not " +
                              pattern.description());
  }
  try {
    return LayoutOption(name);
  } catch (const ConfigError& error) {
    entry.get("layout").error(error.what());
  }
}

void LayoutOption::require_fit(const Parameter& parameter) const {
  if (layout_ == nullptr || layout_ == &masked_layout()) return;
  if (parameter.is_linear_weight()) return;
  const bool is_convolution = parameter.use == WeightUse::Convolution;
  if (is_convolution && layout_ == &csr_layout()) return;
  const std::string which =
      "parameter '" + parameter.name() + "' of shape " + parameter.shape().to_string();
  if (is_convolution) {
    throw ConfigError("layout '" + name_ + "' can only store weights of linear layers, and " +
                      which +
                      " belongs to a convolution; give it an entry of its own with layout: csr, "
                      "auto or masked");
  }
  throw ConfigError("layout '" + name_ + "' can only store weights of linear" +
                    (layout_ == &csr_layout() ? " and convolution" : "") + " layers, and " + which +
                    " is not one; exclude it with param_filter, or give layout: auto or masked");
}

}  // namespace lacuna
