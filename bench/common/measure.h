// Timing of several pieces of work side by side, on Google Benchmark.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <vector>

namespace lacuna::bench {

/// Something to time: stages that run one after the other, as those of a training step do.
struct Work {
  std::string name;  ///< unique among those measured together
  std::vector<std::function<void()>> stages;
  /// Runs before each run of the stages, and is not timed: what changes between steps.
  std::function<void()> prepare = [] {};
};

/// Of the runs of a stage: the time from the work's start to the stage's end. Where there are
/// enough repetitions in quiet moments (MachineProbe), these alone count, and the others stand
/// apart; else all count, quiet or not.
struct Timing {
  double median_ms = 0.0;
  double mean_ms = 0.0;
  double spread = 0.0;         ///< half the distance between the quartiles, over the median
  int repetitions = 0;         ///< in all
  int quiet = 0;               ///< of these, in quiet moments
  bool is_quiet = false;       ///< whether the quiet ones alone count
  double busy_ms = 0.0;        ///< the median of the others; 0 where there are none
  double l1_fed_gflops = 0.0;  ///< medians of what the machine gave in addition to those that count
  double fma_gflops = 0.0;

  /// The two one after the other: times are added, rates are means weighed by the times, and of
  /// the counts the least are taken.
  Timing operator+(const Timing& other) const;
  /// So many times this work.
  Timing operator*(double times) const;
};

struct MeasureOptions {
  int repetitions = 51;  ///< at most; an odd number has a median
  /// No work gets more time than this in all, but for five repetitions that each gets.
  double most_ms = 400.0;
  /// Runs that make up a repetition; 0: as many as fill 20 µs, which the clock resolves.
  int runs = 0;
};

/// The timings of each work's stages, by name. A probe looks at the machine before and after each
/// repetition, and between its runs where these take long. Repetitions of all works are interleaved
/// in random order: what else the machine does hits all alike, and no kernel runs in a tight loop
/// with warm caches, as none does in training. Each work is run once before, to warm up.
std::map<std::string, std::vector<Timing>> measure(const std::vector<Work>& works,
                                                   const MeasureOptions& options);

}  // namespace lacuna::bench
