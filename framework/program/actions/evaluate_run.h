// Evaluates a trained model on data: `lacuna eval`.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "lacuna/framework/config/config.h"
#include "lacuna/framework/program/actions/given_config.h"

namespace lacuna {

struct EvaluateOptions {
  bool last = false;  ///< the last checkpoint of a run folder, even if the best is kept
  /// "key=value" of the sections data, loss and train: the model stays as it is.
  std::vector<std::string> overrides = {};
  bool data_changed = false;  ///< evaluates even if the data has changed since training
  ReportLine report_line = nullptr;
};

struct RunEvaluation {
  std::string checkpoint;  ///< the file that was read
  int64_t step = 0;        ///< of it
  /// A map for each split, validation before test (docs/reference/commands.md).
  Config splits;
  /// Of a quantized model: the same in `int8` and `float32`, with `bytes` and
  /// `examples_per_second`; else null.
  Config precisions = {};
  /// Whether the run has int8 weights alone: `float32` is of these, times their scales.
  bool is_dequantized = false;
  /// The changes of the data since training; empty unless `data_changed` accepts them.
  std::vector<std::string> changes = {};
};

/// Loss and accuracy of a run's checkpoint, or of a checkpoint file, on its validation and test
/// splits. *Effect:* sets the threads of the process to `train.threads`. *Errors:* ConfigError,
/// CheckpointError; DataError if there is nothing to evaluate on, or if the data does not fit the
/// model or has changed.
RunEvaluation evaluate_run(const std::string& run_or_checkpoint,
                           const EvaluateOptions& options = {});

}  // namespace lacuna
