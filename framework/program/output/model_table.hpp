// The model as `lacuna plan` shows it: a row for each module, and the FLOPs of one example.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "lacuna/framework/config/config.h"
#include "lacuna/framework/nn/module_rows.h"
#include "lacuna/framework/train/parts/experiment.hpp"

namespace lacuna {

/// Rows of the modules below the model, and what their parameters are foreseen to hold at the end.
class ModelTable {
 public:
  /// `plan` has every parameter of the model. It may name one several times, in its phases: the
  /// last counts.
  ModelTable(const Experiment& experiment, const std::vector<PlannedParameter>& plan);

  /// Of a module alone, without what is below it, or of all together.
  struct Counts {
    int64_t numel = 0;
    int64_t final_nnz = 0;
    Flops dense;             ///< with all weights
    double inference = 0.0;  ///< forward FLOPs with the final nonzeros
    double training = 0.0;   ///< training FLOPs with the mean of the nonzeros over the run

    Counts& operator+=(const Counts& other);
  };
  const Counts& total() const { return total_; }
  /// Writes FLOPs under the names that summary.json has them by.
  static void write_flops(const Counts& counts, Config& to);

  std::string text() const;
  /// A list of maps: docs/reference/commands.md describes them.
  Config to_config() const;

 private:
  struct Row {
    std::string path, type, description;
    std::optional<Shape> output;
    Counts counts;
  };

  std::vector<Row> rows_;
  Counts total_;
};

}  // namespace lacuna
