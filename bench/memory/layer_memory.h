// The memory experiment: a large sparse layer trains, and what it holds is counted.
#pragma once

#include <cstdint>
#include <string>

#include "common/layer_trainer.h"

namespace lacuna::bench {

/// Bytes. What a nonzero takes is without 16 bytes for each row and column.
struct LayerMemory {
  int64_t nnz = 0;
  int64_t parameter = 0;  ///< Parameter::bytes in a steady state, copies and index included
  int64_t all = 0;        ///< all that building and training the layer has left, batches excluded
  int64_t in_update = 0;  ///< `parameter`, and the most that an update adds to it
  int64_t largest = 0;    ///< largest single allocation
  int64_t resident = 0;   ///< most in memory by the system's count, over the program's baseline

  double per_nonzero(int64_t bytes, int64_t side) const {
    return static_cast<double>(bytes - 16 * 2 * side) / static_cast<double>(nnz);
  }
};

/// Trains the layer for some steps with two updates. Runs in a process of its own, so that one
/// experiment's memory is not the next one's baseline. *Errors:* Error with what the experiment
/// threw.
LayerMemory measure_memory(const LayerOptions& options);

}  // namespace lacuna::bench
