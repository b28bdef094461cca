// An experiment on data that another one has read already.
#pragma once

#include <memory>

#include "lacuna/framework/train/parts/experiment.hpp"

namespace lacuna {

/// As `build_experiment`, on these splits (`Experiment::data`) instead of those that `config.data`
/// names: reading them may take minutes. *Requires* a section `data` that is resolved, and the seed
/// that the splits were made with.
std::unique_ptr<Experiment> build_experiment_on(const DataSplits& data, const Config& config,
                                                Start start = Start::Fresh,
                                                std::shared_ptr<Communicator> job = nullptr);

}  // namespace lacuna
