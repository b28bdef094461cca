// ExperimentPart: one of the parts that an experiment is built of, in stages.
#pragma once

#include <array>
#include <memory>

#include "lacuna/framework/distributed/communicator.h"
#include "lacuna/framework/train/checks/run_origins.hpp"
#include "lacuna/framework/train/parts/experiment.hpp"
#include "lacuna/framework/train/weights/initial_values.hpp"

namespace lacuna {

/// An experiment that is being built, and what its parts hand to each other.
struct ExperimentBuild {
  Experiment& e;
  Start start;
  std::shared_ptr<Communicator> job;        ///< null: one process
  const DataSplits* read_before = nullptr;  ///< data that is there already; null: it is read
  DataCheck check_data = {};                ///< called as soon as the data is there, if given
  RunOrigins origins = {};
  FirstValues first = {};

  bool is_fresh() const { return start != Start::FromCheckpoint; }
};

/// The stages of a part. Each stage runs for all parts, in their order, before the next stage:
/// mistakes in the configuration are found before data is read, and everything else that can be
/// wrong before anything is drawn, measured or loaded that takes long.
struct ExperimentPart {
  using Stage = void (*)(ExperimentBuild&);
  static void none(ExperimentBuild&) {}

  Stage read = none;    ///< checks its sections by themselves
  Stage build = none;   ///< makes its members of the experiment; afterwards every key has been read
  Stage check = none;   ///< whether it fits the other parts; cheap
  Stage finish = none;  ///< what takes long: values, masks, measurements, trial batches
};

ExperimentPart data_part();             ///< datasets, and the hashes that identify them
ExperimentPart loss_part();             ///< the loss and its teacher
ExperimentPart model_part();            ///< layers, first values
ExperimentPart optimizer_part();        ///< the optimizer, held against the length of the run
ExperimentPart sparsity_part();         ///< the algorithm, sparsifiers, layouts
ExperimentPart parametrization_part();  ///< first values and rates, by width and density
ExperimentPart average_part();          ///< the average of the weights, and the memory of training
ExperimentPart batches_part();          ///< the loader, shards and the processes that share them

/// In the order in which they depend on each other.
inline std::array<ExperimentPart, 8> experiment_parts() {
  return {data_part(),      loss_part(),     model_part(),
          optimizer_part(), sparsity_part(), parametrization_part(),
          average_part(),   batches_part()};
}

}  // namespace lacuna
