// Runs made of other tools' weights: `lacuna import`.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "lacuna/framework/config/config.h"

namespace lacuna {

struct ImportOptions {
  /// Whether zeros are masks, and which patterns they have is looked for
  /// (`WeightNames::find_pattern`). In addition to `init_from.find_pattern` of the configuration.
  bool find_pattern = false;
};

struct ImportedRun {
  std::string checkpoint;          ///< the run's, of step 0
  std::vector<std::string> notes;  ///< lines for a log: what was converted, found, made sparse
  int64_t numel = 0;               ///< parameters, zeros included
  int64_t nnz = 0;                 ///< of these, in their masks, or dense
};

/// Makes a run folder of step 0 whose model has the values and masks of a file: what `lacuna train`
/// would begin with, had its `model.init_from` the file (whose `rename` and `skip` are followed,
/// and whose path is replaced). `lacuna eval`, `predict`, `inspect`, `train --resume` and
/// `init_from` take it as any other run. The folder is there whole or not at all. Where the file
/// has weights in int8 with scales, the run is a quantized one, as `lacuna quantize` makes them:
/// its layers run in int8, and it is not trained on.
///
/// Where the configuration has a `sparsity` section, its first masks are made, as at the beginning
/// of a training; a static one keeps the masks that the file, or its zeros, gave (`init_method:
/// inherit`, unless it names another).
///
/// *Errors:* those of `build_experiment`, which reads the configuration's data, and of
/// `load_weights`; StateError when `run_dir` is in use.
ImportedRun import_run(const std::string& file, const Config& config, const std::string& run_dir,
                       const ImportOptions& options = {});

}  // namespace lacuna
