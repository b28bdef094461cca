// Forward passes that must not be ended early.
#pragma once

namespace lacuna {

/// While one is there, what watches a forward pass in this thread does not end it by an exception:
/// code of another language is on the stack, which would change or catch it.
class WholeForward {
 public:
  WholeForward() { ++count_; }
  ~WholeForward() { --count_; }
  WholeForward(const WholeForward&) = delete;
  WholeForward& operator=(const WholeForward&) = delete;

  static bool is_required() { return count_ > 0; }

 private:
  static inline thread_local int count_ = 0;
};

}  // namespace lacuna
