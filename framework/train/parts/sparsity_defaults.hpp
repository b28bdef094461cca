// What a sparsity section leaves out, chosen for the model and the length of the run.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "lacuna/framework/config/config.h"
#include "lacuna/framework/nn/module_rows.h"
#include "lacuna/framework/nn/sequential.h"
#include "lacuna/framework/train/parts/experiment.hpp"
#include "lacuna/framework/train/parts/run_positions.hpp"

namespace lacuna {

/// The weight of the layer that gives the model's outputs, if the default filter would make it
/// sparse: the last layer of the chain with a weight. Null where that is another layer's weight, or
/// lies within a group that joins branches.
ParameterPtr output_weight(const Sequential& model, std::span<const ModuleRow> rows);

/// What a section is completed for.
struct SparsityContext {
  const Sequential* model = nullptr;
  std::span<const ModuleRow> rows;
  RunLength length;
  /// Whether an absent `param_filter`, `update` or `round_to` is written: runs that began without
  /// them keep the meaning that they had.
  bool is_fresh = true;
  uint64_t seed = 0;
};

/// Writes into a configuration's `sparsity` section what it leaves to lacuna: a number as a map;
/// positions ("75 %") as steps; the end of schedules without one; for algorithms that take the key,
/// `update` (DynamicSparsityAlgorithm::default_updates), `round_to` (auto) and `param_filter`,
/// which leaves the output layer dense; and for those that refuse a constant sparsity, as gmp does,
/// a cubic one from 0 to it. It ends at the last update; without `update.stop`, at the last update
/// in the first 75 % of the run. Percentages of a phase refer to its own length. Returns what was
/// chosen, in words for one line of the log; empty where nothing was. *Errors:* ConfigError where
/// the output layer is all that could be sparse.
std::string complete_sparsity(Config& config, const SparsityContext& context);

/// Why a weight stays dense in an experiment with sparsity, as in "the output layer"; empty where
/// it is sparse, or no matrix or kernel of which one would ask.
std::string why_dense(const Experiment& experiment, const Parameter& parameter);

}  // namespace lacuna
