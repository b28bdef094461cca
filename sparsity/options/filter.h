// ParameterFilter: which parameters an algorithm makes sparse.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "lacuna/framework/config/config.h"
#include "lacuna/framework/param/parameter.h"

namespace lacuna {

/// Chooses parameters by their full dotted name.
class ParameterFilter {
 public:
  using Predicate = std::function<bool(const std::string& name, const Parameter& parameter)>;

  /// The default filter: weights of linear layers and convolutions (Parameter::use) of rank above 1
  /// whose lower-case name contains none of embedding, norm, lm_head, pe_helper, and that no other
  /// layer is tied to. Biases, norms, embeddings, positions and parameters without a stated use are
  /// left out.
  ParameterFilter();
  /// Globs, in which `*` also matches dots. A parameter that matches any of them is chosen; one
  /// that another layer is tied to only by its full name. Globs of cstorch's model zoo
  /// (`*proj_q_dense_layer.weight`, `*ffn.ffn.0.linear_layer.weight`) match the parameters with
  /// Hugging Face's names that do the same.
  ParameterFilter(std::vector<std::string> globs);
  ParameterFilter(const char* glob) : ParameterFilter(std::vector<std::string>{glob}) {}
  ParameterFilter(Predicate predicate);
  /// All parameters that the default filter chooses, except those that match the globs.
  static ParameterFilter all_but(std::vector<std::string> globs);
  /// null and "default" → the default; `{except: GLOBS}` → all_but; text → a glob; a list → globs.
  /// *Errors:* ConfigError.
  static ParameterFilter from_config(const Config& config);
  /// Why the default filter excludes a parameter, as in "of shape [10]"; empty if it does not.
  static std::string default_reason(const Parameter& parameter);

  /// The chosen parameters, without those that must stay dense or are frozen. *Errors:* ConfigError
  /// if a glob matches none of the parameters, or nothing is chosen: names the filter and the
  /// nearest name or all names, with the reasons why the default filter excludes them.
  std::vector<ParameterPtr> select(const std::vector<ParameterPtr>& parameters) const;
  bool matches(const Parameter& parameter) const;
  /// Whether it would match the parameter if that were not frozen.
  bool matches_but_for_freezing(const Parameter& parameter) const;

  /// "'fc*.weight'", "the default filter": for messages.
  const std::string& description() const { return description_; }

 private:
  bool admits(const Parameter& parameter) const;

  std::vector<std::string> globs_;
  std::vector<std::string> except_;  ///< globs
  Predicate predicate_;
  bool is_default_ = false;
  std::string description_;
};

}  // namespace lacuna
