// ProfileSpan: tells a profiler which work is under way. Without one it costs the test of a
// pointer.
#pragma once

#include <cstdint>
#include <string_view>

namespace lacuna {

/// Kinds of work of a training run. The last three are parts of the kind that is under way.
enum class Work {
  Other,
  Step,  ///< an optimizer step: what of it is none of the kinds below is `Other`
  Data,
  Forward,
  Teacher,
  Backward,
  Exchange,  ///< with other processes
  Optimizer,
  Masks,
  Average,
  Evaluation,
  Checkpoint,
  Metrics,
  Layer,      ///< a module, by its path
  Node,       ///< the backward pass of an operation, by its name
  Parameter,  ///< by its full name
};

/// Some work that begins. `place` is its place in the order in which nodes are created
/// (autograd/node.h): of a Layer the one before its nodes, of a Node its own.
struct ProfiledWork {
  Work kind = Work::Other;
  std::string_view name = {};
  uint64_t place = 0;
};

/// Learns of work that begins and ends, in pairs that nest, in the thread that it was set in.
class ProfileSink {
 public:
  virtual ~ProfileSink() = default;
  virtual void begin(const ProfiledWork& work) = 0;
  /// `place`: of a Layer the one behind its nodes.
  virtual void end(uint64_t place) = 0;
  /// Time between these two does not count. *Requires* that no work begins or ends meanwhile.
  virtual void pause() = 0;
  virtual void go_on() = 0;
};

/// This thread's, or null.
ProfileSink* profile_sink();
/// *Lifetime:* the caller's, who sets null before it goes.
void set_profile_sink(ProfileSink* sink);

/// Work that is under way while it lives.
class ProfileSpan {
 public:
  explicit ProfileSpan(Work kind, std::string_view name = {}, uint64_t place = 0)
      : sink_(profile_sink()) {
    if (sink_ != nullptr) sink_->begin({kind, name, place});
  }
  ~ProfileSpan() {
    if (sink_ != nullptr) sink_->end(0);
  }
  ProfileSpan(const ProfileSpan&) = delete;
  ProfileSpan& operator=(const ProfileSpan&) = delete;

 private:
  ProfileSink* sink_;
};

/// While it lives, this thread does work that is no part of what is profiled.
class ProfilePause {
 public:
  ProfilePause() : sink_(profile_sink()) {
    set_profile_sink(nullptr);
    if (sink_ != nullptr) sink_->pause();
  }
  ~ProfilePause() {
    set_profile_sink(sink_);
    if (sink_ != nullptr) sink_->go_on();
  }
  ProfilePause(const ProfilePause&) = delete;
  ProfilePause& operator=(const ProfilePause&) = delete;

 private:
  ProfileSink* sink_;
};

}  // namespace lacuna
