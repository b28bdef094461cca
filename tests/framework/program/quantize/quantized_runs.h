// Runs that are quantized by the program, and what it reports of them.
#pragma once

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "framework/program/runs.h"

namespace lacuna {

class QuantizedRunFixture : public RunFixture {
 protected:
  Config report(const std::string& run) const { return load_yaml(run_dir(run) + "/quantize.json"); }
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
