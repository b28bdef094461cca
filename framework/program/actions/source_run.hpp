// What `prune` and `shrink` begin with, a checkpoint or weights alone, and the configuration of the
// run that they make; its evaluation, its first checkpoint and its folder.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "lacuna/framework/config/config.h"
#include "lacuna/framework/io/checkpoint.h"
#include "lacuna/framework/program/actions/given_config.h"
#include "lacuna/framework/train/parts/experiment.hpp"
#include "lacuna/framework/train/runs/run_folder.h"

namespace lacuna {

/// A checkpoint of a run, or weights alone.
struct SourceRun {
  std::string path;
  Checkpoint checkpoint = {};         ///< empty of a file of another program
  std::optional<Config> config = {};  ///< of the run
};

/// *Errors:* those of `choose_checkpoint`.
SourceRun read_source_run(const std::string& given, bool last, const ReportLine& report_line);

/// A section of which --set gives a part, and that the file does not have, is the run's but for it.
/// `merged`: sections of which a part counts as it is.
void take_sections(Config& given, const SourceRun& source,
                   const std::vector<std::string>& assignments,
                   const std::vector<std::string>& merged);

/// The run's configuration with the sections of the one that was given in their place, but for what
/// was measured for the run. A distillation without a teacher learns from the run's network.
/// `command` is for messages. *Errors:* ConfigError without a section that a run needs.
Config merge_sections(const SourceRun& source, const Config& given, const std::string& command);

/// The folder is --run-dir's. That a training configuration has another one is logged. *Errors:*
/// ConfigError where --set gives one.
void refuse_own_folder(const Config& given, const std::string& run_dir,
                       const std::vector<std::string>& overrides);

/// Warns where loss and accuracy of the validation split are those of examples that were trained
/// on.
void report_moved_split(const SourceRun& source, const Config& config);
/// Warns if data at an unchanged path has changed.
void report_changed_data(const SourceRun& source, const Config& given, const Experiment& e);

/// The model starts with the weights of the checkpoint, with their masks; `rename` and `skip` may
/// be given.
void start_from_source(Config& config, const Config& given, const std::string& path,
                       const std::string& command);

/// As `lacuna eval` has it of a checkpoint with this state; the test split is the one that counts,
/// or the validation split if there is no test split. Null without both.
Config evaluation_of(const Experiment& e);

/// A run at step 0, which `lacuna train --resume` trains.
Checkpoint first_checkpoint(const Experiment& e);

/// Writes the folder of a new run, which is there whole or not at all. `fill` writes everything but
/// the configuration into it, and may log to a file in it.
void write_new_run(const std::string& path, const Config& config,
                   const std::function<void(const RunFolder&)>& fill);

}  // namespace lacuna
