// A configuration for another tool's weights, as far as their names and shapes tell it:
// `lacuna import FILE` without --config.
#pragma once

#include <optional>
#include <string>
#include <vector>

namespace lacuna {

struct SuggestedConfig {
  /// In words: "a bert of 12 layers and 768 features", and the text. Nothing where the model is
  /// none that is known.
  std::string what = {};
  std::optional<std::string> yaml = {};
  std::string reason = {};              ///< else: why
  std::vector<std::string> found = {};  ///< and what is in the file, a line each
};

/// Looks for a preset's names, then for linear and convolution layers one after the other. Where
/// config.json lies next to the weights, or in the folder, its keys are used. What weights do not
/// tell (data, heads, activations, strides) is a guess, with a comment behind it. *Errors:*
/// CheckpointError, of a file that cannot be read, is a pickle, or is a run of lacuna's.
SuggestedConfig suggest_config(const std::string& file);

/// What a configuration for this file is called: "bert.yaml" of "models/bert.safetensors".
std::string suggested_name(const std::string& file);

}  // namespace lacuna
