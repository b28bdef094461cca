// The fields of a measured time in every row of JSON and in every table.
#pragma once

#include <string>

#include "common/measure.h"
#include "lacuna/framework/config/config.h"

namespace lacuna::bench {

/// A time, and the work that it took.
struct Rate {
  const Timing& time;
  /// Multiplications and additions of nonzeros; 0 where the work is no arithmetic.
  double operations = 0.0;

  double gflops_nonzeros() const { return operations / time.median_ms / 1e6; }
  /// Of what the machine gave a loop of multiply-adds with an operand from L1, at that time.
  double l1_share() const { return gflops_nonzeros() / time.l1_fed_gflops; }

  std::string share_text() const;  ///< "63 %"; empty where the work is no arithmetic
  std::string quiet_text() const;  ///< "24/51", in brackets where all count
};

/// Sets the keys ms, spread, repetitions, quiet_samples, moment ("quiet" where these alone count,
/// else "any"), busy_ms (null where no repetition was disturbed), l1_fed_gflops, fma_gflops,
/// gflops_nonzeros and l1_share (null where the work is no arithmetic), and instruction_set.
void add_time(Config& row, const Rate& rate);

}  // namespace lacuna::bench
