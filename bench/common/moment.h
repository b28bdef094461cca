// What the machine has to give at this moment: other tenants of a core take from it, and
// differently from different kernels.
#pragma once

#include <string>
#include <vector>

#include "lacuna/framework/core/tensor.h"

namespace lacuna::bench {

/// Rates of fused multiply-adds, two operations each, over all threads together.
struct Moment {
  double l1_fed_gflops = 0.0;  ///< one operand from the first-level cache
  double fma_gflops = 0.0;     ///< all operands in registers
  /// Of the time that went by, the share in which the program's thread ran: what other processes
  /// took is gone. Known, and less than 1, where one thread works alone.
  double own_time = 1.0;
};

/// Looks at the machine for some 30 µs at a time, and remembers the best that it saw.
class MachineProbe {
 public:
  /// The one of this program: what it saw best counts for all that is measured.
  static MachineProbe& instance();
  /// Whether it has been needed.
  static bool has_looked();

  /// Looks, on as many threads as work in parallel now.
  Moment look();
  /// The rate that one of twenty looks so far has reached, or more.
  double best_l1_fed_gflops() const;
  /// Whether the rate from L1 is near enough to the best, 80 % of it, and next to no time was taken
  /// away. A busy neighbour on the core takes a third of the rate, and leaves no doubt.
  bool is_quiet(const Moment& moment) const;
  /// "in its best moments 148 GFLOP/s of one thread from L1, 190 from registers".
  std::string to_string() const;

 private:
  MachineProbe();

  Tensor data_;  // fits the first-level cache
  int64_t rounds_ = 1;
  std::vector<Moment> seen_;
};

}  // namespace lacuna::bench
