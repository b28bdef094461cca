// Runs made of other tools' weights: `lacuna import`.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "lacuna/framework/config/config.h"

namespace lacuna {

struct ImportOptions {
  /// Whether zeros are masks, and their patterns are searched for (`WeightNames::find_pattern`). In
  /// addition to `init_from.find_pattern` of the configuration.
  bool find_pattern = false;
};

struct ImportedRun {
  std::string checkpoint;          ///< the run's, of step 0
  std::vector<std::string> notes;  ///< lines for a log: what was converted, found, made sparse
  int64_t numel = 0;               ///< parameters, zeros included
  int64_t nnz = 0;                 ///< of these, in their masks, or dense
};

/// Makes a run folder of step 0 whose model has the values and masks of a file: the first model of
/// `lacuna train` with the file as `model.init_from` (its `rename` and `skip` apply; its path is
/// replaced). `lacuna eval`, `predict`, `inspect`, `train --resume` and `init_from` accept it like
/// any other run. The folder is written completely or not at all. If the file has weights in int8
/// with scales, the run is quantized, as after `lacuna quantize`: its layers run in int8, and it
/// cannot be trained.
///
/// If the configuration has a `sparsity` section, its first masks are made, as at the start of
/// training; a static one keeps the masks that the file, or its zeros, gave (`init_method:
/// inherit`, unless it names another).
///
/// *Errors:* those of `build_experiment`, which reads the configuration's data, and of
/// `load_weights`; StateError when `run_dir` is in use.
ImportedRun import_run(const std::string& file, const Config& config, const std::string& run_dir,
                       const ImportOptions& options = {});

}  // namespace lacuna
