// StepScope: a change that lasts only while an optimizer changes values.
#pragma once

#include <memory>
#include <vector>

namespace lacuna {

/// A hook makes it when `Optimizer::step()` begins to change values (see
/// Optimizer::register_step_scope_hook). It is destroyed after the values have changed or an
/// exception was thrown, so its destructor undoes the change in both cases.
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
