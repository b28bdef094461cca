// What the processor can do at most: multiply-adds with operands from each level of memory, and
// reading there.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "common/program.h"
#include "lacuna/framework/core/tensor.h"

namespace lacuna::bench {

/// Where operands come from.
struct MemoryLevel {
  std::string name;   ///< registers, L1, L2, L3, memory
  int64_t bytes = 0;  ///< of a thread's operands in `LevelLoop`; 0: registers
};

/// Half of each cache, so that what else lies there need not go; of what many cores share, no more
/// than is this program's to take.
std::vector<MemoryLevel> memory_levels(Size size);

/// A loop on operands of one level, of each thread its own.
class LevelLoop {
 public:
  explicit LevelLoop(const MemoryLevel& level);

  /// A multiply-add an operand.
  void multiply();
  /// Adds the operands up.
  void read();
  /// Operands of a run, of all threads together.
  double elements() const;
  bool from_registers() const { return from_registers_; }

 private:
  std::span<const float> data(int64_t thread) const {
    return data_[static_cast<size_t>(thread)].storage();
  }

  int64_t floats_, rounds_ = 1;
  bool from_registers_;
  std::vector<Tensor> data_;
};

/// The best rates of a few runs of these loops, on as many threads as work.
class MachineLimits {
 public:
  /// What one level gives bytes that fit it.
  struct Level {
    int64_t bytes = 0;
    double gb_per_s = 0.0;
  };

  MachineLimits(double fma_gflops, std::vector<Level> levels)
      : fma_gflops_(fma_gflops), levels_(std::move(levels)) {}
  static MachineLimits measured(Size size);

  double fma_gflops() const { return fma_gflops_; }
  /// The rate of the first level that holds so many bytes.
  double gb_per_s(double bytes) const;
  /// The least time of so many multiplications and additions on so many bytes: the larger of
  /// operations / rate of the registers and bytes / rate of the level that holds them.
  double bound_ms(double operations, double bytes) const;

 private:
  double fma_gflops_;
  std::vector<Level> levels_;  // ascending; the last holds everything
};

}  // namespace lacuna::bench
