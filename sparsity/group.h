// Group: several algorithms, each for the parameters its filter chooses.
#pragma once

#include <memory>
#include <vector>

#include "lacuna/sparsity/algorithm.h"

namespace lacuna {

/// An ordered list of (filter, algorithm). A parameter belongs to the first entry whose filter
/// matches it.
class Group final : public SparsityAlgorithm {
 public:
  Group() : SparsityAlgorithm({}) {}

  /// *Errors:* StateError if the algorithm is null or a Group (use `extend`), or if the group has
  /// already been applied. A group without algorithms cannot be applied.
  void add(ParameterFilter filter, std::unique_ptr<SparsityAlgorithm> algorithm);
  /// Appends the entries of another group. *Errors:* StateError if this group has already been
  /// applied; `other` then stays as it is.
  void extend(Group&& other);
  const std::vector<std::unique_ptr<SparsityAlgorithm>>& algorithms() const { return algorithms_; }

  std::string_view type() const override { return "group"; }
  void adopt(Module& module, std::vector<ParameterPtr> parameters, MaskSource source) override;
  void update(Optimizer& optimizer) override;
  void forecast(Forecast& forecast) const override;
  StateDict state_dict() const override;
  void load_state_dict(const StateDict& state) override;

 private:
  std::vector<ParameterFilter> filters_;  // aligned with algorithms_
  std::vector<std::unique_ptr<SparsityAlgorithm>> algorithms_;
};

}  // namespace lacuna
