// Profiler: where the time of a run goes, by kinds of work and by layers.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "lacuna/framework/core/profile.hpp"
#include "lacuna/framework/nn/module.h"
#include "lacuna/framework/train/loop/clock.hpp"

namespace lacuna {

/// Kinds of work that time is counted by: Other to Metrics.
inline constexpr size_t kProfiledKinds = static_cast<size_t>(Work::Layer);

/// "forward", "checkpoints": as tables and files call a kind.
const char* name_of(Work kind);

/// Seconds by kind. A Step's are none: what it does is of other kinds.
using SecondsByKind = std::array<double, kProfiledKinds>;

/// The time of a run, or of a part of it. Each moment is counted once.
struct Profile {
  /// A module, or the loss: what it spent itself, without the modules below it.
  struct Layer {
    std::string path, type;
    SecondsByKind seconds = {};
  };
  /// Some work, for a picture.
  struct Event {
    Work kind = Work::Other;            ///< that its time counts for
    int layer = -1;                     ///< index of its layer; −1: none
    int name = 0;                       ///< index of its name
    double begin = 0.0, seconds = 0.0;  ///< since the profile began, and how long
  };

  int64_t steps = 0;
  double seconds = 0.0;        ///< from beginning to end
  std::vector<Layer> layers;   ///< in the model's order, and then the loss
  SecondsByKind outside = {};  ///< of no layer
  std::vector<Event> events;   ///< of the first `event_steps` steps and what was around them
  std::vector<std::string> names;
  int64_t event_steps = 0;

  SecondsByKind total() const;  ///< of layers and outside
};

/// Measures what the thread that made it does, until `finish`. *Cost:* two looks at the clock for
/// each module, operation and parameter of a step; memory for kMostEvents events.
class Profiler : public ProfileSink {
 public:
  static constexpr size_t kMostEvents = 200'000;

  /// *Requires* that no other profiler is at work in this thread. *Lifetime:* the model outlives
  /// it.
  explicit Profiler(Module& model);
  ~Profiler() override;
  Profiler(const Profiler&) = delete;
  Profiler& operator=(const Profiler&) = delete;

  void begin(const ProfiledWork& work) override;
  void end(uint64_t place) override;
  void pause() override { paused_ = StepClock::now(); }
  void go_on() override { start_ += StepClock::now() - paused_; }

  /// Stops, and returns what was measured.
  Profile finish();

 private:
  struct Frame {
    Work kind = Work::Other;   // as it was begun
    Work phase = Work::Other;  // the kind that its time counts for
    int layer = -1, name = 0;
    double begin = 0.0;
    double inner = 0.0;  // seconds of what it consists of
  };

  double now() const { return seconds_since(start_); }
  int add_layer(const std::string& path, std::string type);
  int layer_of(const ProfiledWork& work, Work phase);
  int owner_of(uint64_t place) const;
  int index_of_name(std::string_view name);
  void count(const Frame& frame, double seconds);

  StepClock::time_point start_ = StepClock::now(), paused_ = {};
  Profile profile_;
  std::vector<Frame> stack_;
  std::map<std::string, int, std::less<>> layers_;      // by the paths of modules
  std::map<std::string, int, std::less<>> parameters_;  // layers by the names of parameters
  std::map<std::string, int, std::less<>> names_;
  // From each place on, the layer whose nodes follow; ascending, of the step under way.
  std::vector<std::pair<uint64_t, int>> places_;
};

}  // namespace lacuna
