// Removes whole units of a trained model, into a run that training can continue: `lacuna shrink`.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "lacuna/framework/config/config.h"
#include "lacuna/framework/program/actions/given_config.h"

namespace lacuna {

/// The names of the methods: "magnitude", "saliency", "error" and "dead".
const std::vector<std::string>& shrink_methods();

struct ShrinkRequest {
  std::string checkpoint;                    ///< a run folder or a checkpoint
  std::string config_path = {};              ///< may be empty with `config`, `method` or `to`
  Config config = {};                        ///< the same as a tree; used if there is no path
  std::optional<std::string> method = {};    ///< short for shrink.method=…
  std::optional<std::string> to = {};        ///< short for shrink.to: "flops=0.5"
  std::optional<std::string> round_to = {};  ///< short for shrink.round_to: "16", "auto"
  std::string run_dir;                       ///< the folder of the smaller run
  std::vector<std::string> overrides = {};   ///< "key=value", of the given configuration
  std::optional<std::string> threads = {};   ///< short for train.threads=…
  bool last = false;  ///< the last checkpoint of a run folder, even if the best is kept
  ReportLine report_line = nullptr;
};

struct ShrunkRun {
  Config report;     ///< as shrink.json in the run folder has it (docs/reference/commands.md)
  std::string text;  ///< the same as tables
};

/// Removes units of the model according to the section `shrink` (docs/guides/shrinking.md), and
/// makes a run folder of step 0 for the smaller model, completely or not at all: its layers with
/// their new sizes, weights, masks and the optimizer's states. Sections that the request does not
/// give are those of the run. *Effect:* sets the process's threads and layout fallback to
/// `train.threads` and `train.layout_fallback`; logs also to the new folder. *Errors:* ConfigError,
/// also for layers whose units cannot be removed and for a budget that cannot be met; DataError,
/// CheckpointError, MemoryError; StateError if `run_dir` is in use. *Cost:* two evaluations; passes
/// over the calibration examples (method saliency: one, with gradients; error: two for each layer);
/// a budget of time: about ten measurements of steps.
ShrunkRun shrink_run(const ShrinkRequest& request);

}  // namespace lacuna
