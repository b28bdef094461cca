// StepScope: what holds only while an optimizer changes values.
#pragma once

#include <memory>
#include <vector>

namespace lacuna {

/// Made by a hook when `Optimizer::step()` begins to change values (see
/// Optimizer::register_step_scope_hook), and destroyed when it has done so, or has thrown: what the
/// destructor undoes is undone in either case.
class StepScope {
 public:
  StepScope() = default;
  virtual ~StepScope() = default;
  StepScope(const StepScope&) = delete;
  StepScope& operator=(const StepScope&) = delete;

  /// Called once all values have changed, before the post-step hooks.
  virtual void commit() {}
};

using StepScopes = std::vector<std::unique_ptr<StepScope>>;

}  // namespace lacuna
