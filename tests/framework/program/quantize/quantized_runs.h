// Runs that are quantized by the program, and what it reports of them.
#pragma once

#include <gtest/gtest.h>

#include <filesystem>
#include <string>
#include <vector>

#include "framework/program/runs.h"

namespace lacuna {

class QuantizedRunFixture : public RunFixture {
 protected:
  Config report(const std::string& run) const { return load_yaml(run_dir(run) + "/quantize.json"); }
  /// The configuration of a short training of that model on a text, with `more` sections.
  void begin_with_text(const std::string& model, const std::string& more = "") const {
    std::string text;
    for (int i = 0; i < 60; ++i) text += "to be or not to be, that is the question\n";
    write_text(folder_ / "play.txt", text);
    write_text(config(), "data: {type: text, path: " + (folder_ / "play.txt") +
                             ", context: 8, stride: 8, validation: 0.1, test: 0.1}\nmodel: " +
                             model + "\noptimizer: {type: adamw, lr: 0.003}\n" + more +
                             "train: {steps: 8, batch_size: 4, threads: 1}\n");
  }
  Ended quantize(const std::string& from, const std::string& to,
                 const std::vector<std::string>& more = {}) const {
    std::vector<std::string> arguments{"quantize", run_dir(from), "--run-dir", run_dir(to)};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return run_lacuna(arguments);
  }
  /// Trains the run "run" and makes "int8" of it.
  void quantize(const std::vector<std::string>& more = {}) const {
    ASSERT_EQ(train().code, 0);
    const Ended ended = quantize("run", "int8", more);
    ASSERT_EQ(ended.code, 0) << ended.err;
  }
  /// Of the run "int8".
  Ended export_to(const std::string& format, const std::string& path,
                  const std::vector<std::string>& more = {}) const {
    std::vector<std::string> arguments{"export", run_dir("int8"), "--format",
                                       format,   "--out",         path};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return run_lacuna(arguments);
  }

  /// A file or folder into a run, in the place of an earlier one, by the test's configuration.
  Ended import_from(const std::string& file, const std::string& run = "back",
                    const std::vector<std::string>& more = {}) const {
    std::filesystem::remove_all(run_dir(run));
    std::vector<std::string> arguments{"import", file, "--config", config(), "--out", run_dir(run)};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return run_lacuna(arguments);
  }

  /// Of the last split, in "float32" or "int8".
  static double loss(const Config& report, const char* precision) {
    return report.at(precision).at("splits").items().back().required<double>("loss");
  }
  /// Of all splits, as `lacuna eval` prints them.
  std::vector<std::string> losses(const std::string& run) const {
    const Ended ended = run_lacuna({"eval", run_dir(run), "--json"});
    EXPECT_EQ(ended.code, 0) << ended.err;
    std::vector<std::string> all;
    for (const Config& split : parse_yaml(ended.out, "eval").at("splits").items()) {
      all.push_back(split.at("loss").text());
    }
    return all;
  }
};

}  // namespace lacuna
