// Tiny runs of the program, and what they leave behind.
#pragma once

#include <gtest/gtest.h>

#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "framework/program/process.h"
#include "framework/train/tiny_run.h"
#include "lacuna/framework/config/config.h"
#include "lacuna/framework/io/checkpoint.h"
#include "lacuna/framework/io/yaml.h"
#include "lacuna/framework/train/runs/run_folder.h"
#include "state_differences.h"
#include "temporary_folder.h"

namespace lacuna {

/// A table of small numbers with the columns x, y and label, which is 0 or 1.
inline std::string table_of_numbers(int rows) {
  std::string table = "x,y,label\n";
  for (int i = 0; i < rows; ++i) {
    for (const int value : {i % 7, i % 5}) table += std::to_string(value) + ",";
    table += std::to_string(i % 2) + "\n";
  }
  return table;
}

/// A folder with config.yaml, the tiny run's by default, in which runs are made.
class RunFixture : public testing::Test {
 protected:
  RunFixture() { write_text(config(), kTinyRun); }

  std::string config() const { return folder_ / "config.yaml"; }
  std::string run_dir(const std::string& name = "run") const { return folder_ / name; }
  std::string checkpoint(int64_t step, const std::string& name = "run") const {
    char file[32];
    std::snprintf(file, sizeof file, "step-%010lld.h5", static_cast<long long>(step));
    return run_dir(name) + "/checkpoints/" + file;
  }

  /// `lacuna train config.yaml --run-dir <name> …`.
  Ended train(const std::vector<std::string>& more = {}, const std::string& name = "run",
              const ProcessOptions& options = {}) const {
    std::vector<std::string> arguments{"train", config(), "--run-dir", run_dir(name)};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return run_lacuna(arguments, options);
  }

  const TemporaryFolder folder_;
};

/// The JSON objects in a run's metrics.jsonl.
inline std::vector<Config> events(const std::string& run_dir) {
  std::vector<Config> list;
  std::istringstream lines(read_text(run_dir + "/metrics.jsonl"));
  for (std::string line; std::getline(lines, line);) list.push_back(parse_yaml(line, "metrics"));
  return list;
}

/// What must be the same of two runs that are: events without times and rates, a line each.
inline std::vector<std::string> timeless_events(const std::string& run_dir) {
  std::vector<std::string> lines;
  for (Config event : events(run_dir)) {
    event.erase("seconds");
    event.erase("examples_per_second");
    lines.push_back(event.to_json());
  }
  return lines;
}

inline Config summary(const std::string& run_dir) { return load_yaml(run_dir + "/summary.json"); }

}  // namespace lacuna
