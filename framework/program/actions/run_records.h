// Records in a run folder: metrics as columns, the summary, pictures of its masks.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "lacuna/framework/config/config.h"

namespace lacuna {

/// The events of one split in columns of equal length, one row for each event.
struct MetricColumns {
  /// By the events' keys, with those of nested maps joined by dots ("sparsity.fc1.weight.actual");
  /// NaN if an event has no such number.
  std::map<std::string, std::vector<double>> numbers = {};
  std::map<std::string, std::vector<std::string>> texts = {};  ///< "" if an event has none
};

/// metrics.jsonl by split: "train", "validation", "test", and "update", a row for each changed mask
/// (docs/reference/run-folder.md). Damaged lines, such as the last one of a killed run, are
/// ignored. *Errors:* DataError if the folder is not a run.
std::map<std::string, MetricColumns> read_metrics(const std::string& run_dir);

/// summary.json; null for a run that has not ended. *Errors:* DataError if the folder is not a run.
Config read_summary(const std::string& run_dir);

/// config.yaml. *Errors:* as `read_metrics`; ConfigError.
Config read_run_config(const std::string& run_dir);

/// The newest saved picture of a mask.
struct KeptPicture {
  std::string parameter;
  int64_t step = 0;
  double density = 1.0;
  std::string png;  ///< the bytes of a file: one pixel for each position, or for several
};

/// *Errors:* as `read_metrics`. *Cost:* reads the kept masks.
std::vector<KeptPicture> newest_masks(const std::string& run_dir, int64_t most_pixels_of_a_side);

}  // namespace lacuna
