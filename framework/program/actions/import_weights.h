// Another tool's weights made a run: `lacuna import`.
#pragma once

#include <string>

#include "lacuna/framework/interop/import_run.h"
#include "lacuna/framework/program/actions/given_config.h"

namespace lacuna {

struct ImportRequest {
  std::string file;  ///< the weights
  /// Empty: the model is made from the file's names and shapes, where they tell it; the overrides
  /// must give the data then.
  GivenConfig config = {};
  std::string run_dir;
  bool find_pattern = false;  ///< as ImportOptions::find_pattern
  Tell tell = nullptr;
};

/// As `import_run`, with a configuration whose overrides are applied and whose paths may lie next
/// to its file. *Effect:* `train.threads` and `train.layout_fallback` become those of the process.
/// *Errors:* those of `import_run`; ConfigError when no configuration is given and none can be made
/// from the file.
ImportedRun import_weights(const ImportRequest& request);

/// A configuration made from the file's names and shapes, without data, as YAML; reports a line
/// on what was found. *Errors:* ConfigError, after a list of what is in the file was reported.
std::string suggested_yaml(const std::string& file, const Tell& tell);

}  // namespace lacuna
