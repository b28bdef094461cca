// Phases: a training plan that moves between algorithms at given steps.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "lacuna/sparsity/algorithm.h"

namespace lacuna {

/// One part of a plan.
struct Phase {
  std::unique_ptr<SparsityAlgorithm> algorithm;
  /// The global step after which the next phase begins; absent in the last one.
  std::optional<int64_t> until;
};

/// Algorithms one after the other. Each counts its steps, schedules and updates from its own
/// beginning, and starts from the masks, values and states of the previous phase: a higher sparsity
/// prunes by |w| at once, `Dense` fills the masks, otherwise the masks stay. Parameters that a
/// phase does not choose keep their masks.
class Phases final : public SparsityAlgorithm {
 public:
  /// *Errors:* ConfigError unless there are phases, `until` increases and only the last phase has
  /// none; StateError if an algorithm is null, a Group, or itself a plan of phases.
  explicit Phases(std::vector<Phase> phases);

  std::string_view type() const override { return "phases"; }
  void adopt(Module& module, std::vector<ParameterPtr> parameters, MaskSource source) override;
  void update(Optimizer& optimizer) override;
  bool makes_sparse(const ParameterPtr& parameter) const override;
  void forecast(Forecast& forecast) const override;
  StateDict state_dict() const override;
  void load_state_dict(const StateDict& state) override;

  /// Number of the phase that is running, from 0.
  size_t current() const { return current_; }

 private:
  SparsityAlgorithm& algorithm() const { return *phases_[current_].algorithm; }
  void enter(size_t phase, MaskSource source);
  void require_applied() const;
  int64_t begin_of(size_t phase) const { return phase == 0 ? 0 : *phases_[phase - 1].until; }

  std::vector<Phase> phases_;
  size_t current_ = 0;
  Module* module_ = nullptr;           // outlives this, as owner of the parameters
  std::vector<ParameterPtr> offered_;  // the phases choose among these
};

}  // namespace lacuna
