// RunTable: runs side by side, the best first, as a table of text, CSV or JSON; and groups of
// runs that differ in their seeds alone.
#pragma once

#include <limits>
#include <string>
#include <vector>

#include "lacuna/framework/report/run_data.hpp"

namespace lacuna {

/// What came of one run. NaN where it is not known.
struct RunResult {
  static constexpr double kNone = std::numeric_limits<double>::quiet_NaN();

  std::string name, folder, state;
  std::string label = {};   ///< RunData::label
  std::string task = {};    ///< task_of(run)
  double step = kNone;      ///< the last one
  std::string split = {};   ///< which the results are of: "test", else "validation" or "train"
  double accuracy = kNone;  ///< of the last evaluation, a fraction; of classification
  double precision_at_1 = kNone;     ///< the same, of examples with several labels
  double r2 = kNone;                 ///< the same, of regression
  double mae = kNone, rmse = kNone;  ///< the same, in the unit of the targets
  double loss = kNone;               ///< the same
  double perplexity = kNone, bits_per_character = kNone;  ///< the same, of language models
  /// Of the best evaluation, which the validation split judges where there is one.
  double best_accuracy = kNone, best_r2 = kNone, best_loss = kNone, best_step = kNone;
  double best_precision_at_1 = kNone;
  double best_mae = kNone, best_rmse = kNone;
  double best_perplexity = kNone, best_bits_per_character = kNone;
  bool keeps_best = false;  ///< whether its model is that of the best evaluation: early stopping
  double density = kNone;   ///< nonzeros over all parameters
  double nnz = kNone;
  double parameter_bytes = kNone;
  double examples_per_second = kNone;  ///< of a quantized run, as its products run
  double train_seconds = kNone;
  double seed = kNone;
};

RunResult result_of(const RunData& run);

/// The number of nonzeros of all sparse layers after a step.
double sum_of_nonzeros(const RunData& run, double step);

/// The best first: by precision at 1 or accuracy (of runs that have one), then by loss; language
/// models by bits per character where all have it, else by loss; runs without a result last. Equal
/// ones stay in their order. Runs of different tasks are for `ranked_by_task`.
std::vector<RunResult> sorted_by_result(std::vector<RunResult> results);

/// A table as its columns' names and its rows' cells, for whatever it is written as.
struct TextTable {
  std::vector<std::string> columns;
  std::vector<std::vector<std::string>> rows;
  /// Columns aligned by spaces, numbers to the right.
  std::string text() const;
  /// RFC 4180: cells with commas, quotes or line ends in quotes; lines end with CR LF.
  std::string csv() const;
};

/// For people: labels, percent and rounded numbers. Columns that no run has anything in are left
/// out.
TextTable readable_table(const std::vector<RunResult>& results);
/// With the keys of `to_json`, numbers as exact as they are.
TextTable exact_table(const std::vector<RunResult>& results);
/// A list of maps; unknown values are null.
Config to_json(const std::vector<RunResult>& results);

/// Mean and spread over runs that differ in their seeds alone.
struct SeedGroup {
  std::string name;  ///< what sets it apart: "sparsity.sparsity=0.9"
  std::vector<RunResult> results;
  double mean_accuracy = RunResult::kNone, spread_accuracy = RunResult::kNone;
  double mean_precision = RunResult::kNone, spread_precision = RunResult::kNone;  ///< at 1
  double mean_r2 = RunResult::kNone, spread_r2 = RunResult::kNone;
  double mean_rmse = RunResult::kNone, spread_rmse = RunResult::kNone;
  double mean_loss = RunResult::kNone, spread_loss = RunResult::kNone;
  double mean_perplexity = RunResult::kNone, spread_perplexity = RunResult::kNone;
  double mean_bits = RunResult::kNone, spread_bits = RunResult::kNone;  ///< per character
  double mean_density = RunResult::kNone, mean_seconds = RunResult::kNone;
};
/// One group for each of `labels`, which has a label for each run. The best mean first. The spread
/// is the standard deviation of a sample (over n − 1), unknown of one run. Runs without a result
/// count for nothing.
std::vector<SeedGroup> group_runs(const std::vector<RunData>& runs,
                                  const std::vector<std::string>& labels);
std::vector<SeedGroup> group_results(const std::vector<RunResult>& results,
                                     const std::vector<std::string>& labels);
TextTable readable_table(const std::vector<SeedGroup>& groups);

}  // namespace lacuna
