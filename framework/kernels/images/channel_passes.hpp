// How passes over the channels of images are cut into tasks, and sums of a channel over its tasks.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "lacuna/framework/core/parallel.h"
#include "lacuna/framework/kernels/images/image_runs.hpp"

namespace lacuna {

/// The parts of a group, cut into tasks for the threads, independent of their number.
class ChannelTasks {
 public:
  explicit ChannelTasks(const ImageRuns& runs) : parts_(runs.parts()), groups_(runs.groups()) {
    constexpr int64_t kTasks = 16;
    tasks_ = std::clamp<int64_t>((kTasks + groups_ - 1) / std::max<int64_t>(groups_, 1), 1,
                                 std::max<int64_t>(parts_, 1));
  }

  /// Tasks of one group.
  int64_t count() const { return tasks_; }
  int64_t groups() const { return groups_; }
  /// The first part of a task; after the last task, the number of parts.
  int64_t first(int64_t task) const { return parts_ * task / tasks_; }

  /// Calls `body(group, task)` for all tasks, in parallel.
  template <class Body>
  void for_each(const Body& body) const {
    parallel_blocks(groups_ * tasks_, [&](int64_t index) { body(index / tasks_, index % tasks_); });
  }

 private:
  int64_t parts_, groups_, tasks_;
};

/// Two sums of each channel, added part by part within a task, and then task by task.
class ChannelSums {
 public:
  ChannelSums(const ImageRuns& runs, const ChannelTasks& tasks)
      : runs_(runs),
        tasks_(tasks),
        lanes_(runs.has_channel_lanes() ? kRunLanes : 1),
        partial_(static_cast<size_t>(runs.groups() * tasks.count() * lanes_ * 2)) {}

  /// Computes the sums of one task; `add(part, s, q)` adds a part's sums by lane.
  template <class Add>
  void sum(int64_t group, int64_t task, const Add& add) {
    double* into = partial_.data() + (group * tasks_.count() + task) * lanes_ * 2;
    for (int64_t part = tasks_.first(task); part < tasks_.first(task + 1); ++part) {
      LaneSums s{}, q{};
      add(part, s, q);
      for (int64_t i = 0; i < runs_.lanes(group, part); ++i) {
        const int64_t lane = lanes_ == 1 ? 0 : i;
        into[lane * 2] += s[static_cast<size_t>(i)];
        into[lane * 2 + 1] += q[static_cast<size_t>(i)];
      }
    }
  }

  struct Pair {
    double s = 0.0, q = 0.0;
  };
  /// To be called after all tasks of the channel's group.
  Pair of(int64_t channel) const {
    Pair sums;
    for (int64_t task = 0; task < tasks_.count(); ++task) {
      const auto at = static_cast<size_t>(
          ((channel / lanes_ * tasks_.count() + task) * lanes_ + channel % lanes_) * 2);
      sums.s += partial_[at];
      sums.q += partial_[at + 1];
    }
    return sums;
  }

 private:
  const ImageRuns& runs_;
  const ChannelTasks& tasks_;
  int64_t lanes_;
  std::vector<double> partial_;
};

}  // namespace lacuna
