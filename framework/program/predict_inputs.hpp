// The inputs that `lacuna predict` is given: tables, images and their files, sentences.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "lacuna/framework/config/config.h"
#include "lacuna/framework/data/dataset.h"
#include "lacuna/framework/data/load_data.h"
#include "lacuna/framework/train/input_format.h"

namespace lacuna {

/// Inputs, ready for the model; where a table had the column of the labels or targets, these; and
/// of a folder the file of each example.
struct PredictInputs {
  std::shared_ptr<const Dataset> dataset;
  bool has_answers = false;
  std::vector<std::string> files = {};
};

/// Reads a file, or a folder of images; "-" is the standard input, a table or sentences. A table's
/// columns are found by their names where the model was trained on such: a warning reports
/// what is left out or stands elsewhere. `data` is that section of the run's configuration, and
/// `known` has its number of classes (known_data.hpp): labels are below it.
/// *Errors:* DataError.
PredictInputs read_predict_inputs(const std::string& path, const Config& data,
                                  const InputFormat& format, const KnownData& known);

/// The same for a model of sparse examples: a file as those of its training data.
PredictInputs read_sparse_inputs(const std::string& path, const Config& data,
                                 const KnownData& known);

}  // namespace lacuna
