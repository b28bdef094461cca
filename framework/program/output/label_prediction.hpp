// What `lacuna predict` does with a model of examples that have several labels each.
#pragma once

#include <array>
#include <cstdint>
#include <string>

#include "lacuna/framework/data/dataset.h"
#include "lacuna/framework/nn/module.h"
#include "lacuna/framework/program/output/csv_writer.hpp"

namespace lacuna {

/// Classes that are written for each example.
inline constexpr int64_t kWrittenClasses = 5;

/// What was predicted of some examples, and how many of their labels are among the 1, 3 and 5
/// classes with the largest outputs.
struct LabelPredictions {
  int64_t examples = 0;
  int64_t labelled = 0;  ///< examples that have a label in the file
  std::array<double, 3> hits = {};

  /// "P@1 31.50 %  P@3 25.10 %  P@5 20.40 % of 100 examples, by their labels".
  std::string in_words() const;
};

/// Writes a row for each example and adds to `predictions`.
void predict_labels(Module& model, const Dataset& data, CsvWriter& writer,
                    LabelPredictions& predictions);

}  // namespace lacuna
