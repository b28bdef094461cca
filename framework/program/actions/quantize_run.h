// Converts a trained model to int8, in a new run folder: `lacuna quantize`.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "lacuna/framework/config/config.h"
#include "lacuna/framework/program/actions/given_config.h"

namespace lacuna {

struct QuantizeRequest {
  std::string checkpoint;        ///< a run folder or a checkpoint
  std::string config_path = {};  ///< may be empty: `config`, the run's own section, or the defaults
  Config config = {};            ///< the same as a tree; used if there is no path
  std::string run_dir;           ///< the folder of the quantized run
  std::vector<std::string> overrides = {};  ///< "key=value", of the section `quantize`
  std::optional<std::string> threads = {};  ///< short for train.threads=…
  bool last = false;      ///< the last checkpoint of a run folder, even if the best is kept
  std::string only = {};  ///< "int8": without the float32 weights of the quantized layers
  ReportLine report_line = nullptr;
};

struct QuantizedRun {
  Config report;     ///< as quantize.json in the run folder has it (docs/reference/commands.md)
  std::string text;  ///< the same as tables
};

/// Converts layers of a trained model to int8 (docs/guides/quantization.md) and writes a run folder
/// for evaluations and predictions, completely or not at all. *Effect:* sets the threads of the
/// process to `train.threads`. *Errors:* ConfigError, DataError, CheckpointError; StateError if
/// `run_dir` is in use. *Cost:* a pass over the calibration examples, with `gptq` one for each
/// layer, and two evaluations.
QuantizedRun quantize_run(const QuantizeRequest& request);

}  // namespace lacuna
