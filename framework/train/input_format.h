// InputFormat: the form of a trained model's inputs, saved with it.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "lacuna/framework/config/state_dict.h"
#include "lacuna/framework/core/shape.h"
#include "lacuna/framework/core/tensor.h"
#include "lacuna/framework/data/load_data.h"
#include "lacuna/framework/text/tokenizer.h"

namespace lacuna {

/// Shape and normalization of the examples that a model was trained on, and its classes.
struct InputFormat {
  Shape example_shape;
  Normalization normalization;
  std::vector<std::string> class_names = {};  ///< empty if the data has none
  TokenizerPtr tokenizer = nullptr;           ///< null unless the inputs are tokens of text
  /// For a table whose first line names the columns: the names of the inputs, in the order of the
  /// features, and of the label or target.
  std::vector<std::string> columns = {};
  std::string label_column = {};
  /// For columns of text: the names of their categories, each of which is a feature.
  std::map<std::string, std::vector<std::string>> categories = {};
  /// Replacements for missing inputs, a value for each feature; empty if none may be missing.
  std::vector<double> fill = {};
  /// How regression's targets were scaled, a value for each output; empty if they were not.
  std::vector<double> target_mean = {}, target_std = {};

  static InputFormat of(const DataSplits& data);

  /// In the form for datasets; classes are counted by their names.
  KnownData known() const;

  /// "example_shape" (integers), "normalization" (JSON with `mean` and `std`, exact) and, if there
  /// are any, "class_names" (a list in JSON), "tokenizer" (as Tokenizer::to_json), "columns" (JSON
  /// with `inputs`, `label` and `categories`), "missing" (a list in JSON) and
  /// "target_normalization" (as "normalization").
  StateDict state_dict() const;
  /// *Errors:* CheckpointError.
  static InputFormat from_state(const StateDict& state);
};

/// Outputs of regression in the targets' original unit: the scaling of targets for training is
/// reversed. Other outputs are returned unchanged. *Shapes:* [n, outputs].
Tensor in_target_unit(const Tensor& outputs, const InputFormat& format);

}  // namespace lacuna
