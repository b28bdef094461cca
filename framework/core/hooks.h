// Hook lists: functions called at a named moment, each removable through the handle it came with.
#pragma once

#include <functional>
#include <memory>
#include <utility>
#include <vector>

namespace lacuna {

/// Removes the hook it was returned for. Dropping the handle keeps the hook.
class HookHandle {
 public:
  HookHandle() = default;
  explicit HookHandle(std::weak_ptr<bool> alive) : alive_(std::move(alive)) {}

  /// Removes the hook from its list; does nothing if it is already removed.
  void remove() {
    if (const auto alive = alive_.lock()) *alive = false;
  }

 private:
  std::weak_ptr<bool> alive_;
};

/// Functions called in the order they were added. A hook may remove itself or others, or add more
/// (called from the next time on), while the list runs.
template <class... Arguments>
class HookList {
 public:
  using Function = std::function<void(Arguments...)>;

  HookHandle add(Function function) {
    hooks_.push_back({std::move(function), std::make_shared<bool>(true)});
    return HookHandle(hooks_.back().alive);
  }

  void call(Arguments... arguments) {
    std::erase_if(hooks_, [](const Hook& hook) { return !*hook.alive; });
    const std::vector<Hook> snapshot = hooks_;
    for (const Hook& hook : snapshot) {
      if (*hook.alive) hook.function(arguments...);
    }
  }

 private:
  struct Hook {
    Function function;
    std::shared_ptr<bool> alive;
  };
  std::vector<Hook> hooks_;
};

}  // namespace lacuna
