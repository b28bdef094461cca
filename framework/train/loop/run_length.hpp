// train.seconds: a run as long as fits into a time.
#pragma once

#include <memory>
#include <string>

#include "lacuna/framework/train/parts/experiment.hpp"

namespace lacuna {

/// Whether a configuration gives the length of its run by `train.seconds`. *Errors:* ConfigError if
/// that is not a positive number, or `train.epochs` or `train.steps` are given too.
bool has_seconds(const Config& config);

/// An experiment whose length was measured, and a line about it.
struct MeasuredLength {
  std::unique_ptr<Experiment> experiment;
  std::string note;
};

/// Builds experiments, and times some of their steps, changes of masks, evaluations and
/// checkpoints, until it is known how many steps take `train.seconds`. In the configuration
/// `train.steps` takes that key's place, and an experiment is built of it that has trained nothing:
/// all that differs from a run of so many steps is the origin of the number. The data is read once.
/// Collective: the first process's times decide. *Cost:* a twentieth of the time, one second at
/// least and ten at most, and what is built. *Errors:* those of `build_experiment`; Error where
/// nothing can be measured.
MeasuredLength build_for_seconds(Config& config, const std::shared_ptr<Communicator>& job);

}  // namespace lacuna
