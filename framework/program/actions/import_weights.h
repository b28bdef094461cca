// Makes a run from another tool's weights: `lacuna import`.
#pragma once

#include <string>

#include "lacuna/framework/interop/import_run.h"
#include "lacuna/framework/program/actions/given_config.h"

namespace lacuna {

struct ImportRequest {
  std::string file;  ///< the weights
  /// Empty: the model is made from the file's names and shapes, if they determine it; the overrides
  /// must then give the data.
  GivenConfig config = {};
  std::string run_dir;
  bool find_pattern = false;  ///< as ImportOptions::find_pattern
  ReportLine report_line = nullptr;
};

/// As `import_run`, with a configuration whose overrides are applied and whose paths may lie next
/// to its file. *Effect:* sets the process's threads and layout fallback to `train.threads` and
/// `train.layout_fallback`. *Errors:* those of `import_run`; ConfigError if no configuration is
/// given and none can be made from the file.
ImportedRun import_weights(const ImportRequest& request);

/// A configuration made from the file's names and shapes, without data, as YAML; reports a line on
/// what was found. *Errors:* ConfigError, after a list of the file's contents was reported.
std::string suggested_yaml(const std::string& file, const ReportLine& report_line);

}  // namespace lacuna
