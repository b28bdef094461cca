// A run trained on a table, and what its use is compared with: for the tests of eval and predict.
#pragma once

#include <gtest/gtest.h>

#include <cmath>
#include <sstream>
#include <string>
#include <vector>

#include "framework/program/runs.h"
#include "lacuna/framework/core/random.h"

namespace lacuna {

inline std::string number(double value) { return Config(value).text(); }

/// 60 examples of three classes: points around the corners of a triangle, far from the origin, so
/// that normalization matters. The label is in the last column.
struct Table {
  std::string with_labels = "x,y,label\n";
  std::string without_labels = "x,y\n";
  std::vector<int> labels;

  explicit Table(uint64_t seed) {
    const CounterRng rng(seed, "table");
    for (uint64_t i = 0; i < 60; ++i) {
      const int label = static_cast<int>(i % 3);
      const double angle = 2.0 * label;
      const std::string x = number(500 + 30 * std::cos(angle) + 10 * rng.uniform(2 * i));
      const std::string y = number(-7 + 0.3 * std::sin(angle) + 0.1 * rng.uniform(2 * i + 1));
      with_labels += x + "," + y + "," + std::to_string(label) + "\n";
      without_labels += x + "," + y + "\n";
      labels.push_back(label);
    }
  }
};

inline std::vector<std::vector<double>> read_rows(const std::string& path, std::string* header) {
  std::istringstream lines(read_text(path));
  std::getline(lines, *header);
  std::vector<std::vector<double>> rows;
  for (std::string line; std::getline(lines, line);) {
    rows.emplace_back();
    std::istringstream fields(line);
    for (std::string field; std::getline(fields, field, ',');) {
      rows.back().push_back(std::stod(field));
    }
  }
  return rows;
}

inline std::string idx_images(int count, int rows, int columns) {
  std::string bytes("\0\0\x08\x03", 4);
  for (const int size : {count, rows, columns}) {
    bytes += std::string("\0\0\0", 3) + static_cast<char>(size);
  }
  for (int i = 0; i < count * rows * columns; ++i) bytes += static_cast<char>(i * 37 % 256);
  return bytes;
}

class Use : public RunFixture {
 protected:
  void train_table(const std::string& normalize = "standard", const std::string& more = "") {
    write_text(folder_ / "train.csv", Table(1).with_labels);
    write_text(folder_ / "test.csv", Table(2).with_labels);
    write_text(config(), "data: {type: csv, train: " + (folder_ / "train.csv") +
                             ", test: " + (folder_ / "test.csv") + ", normalize: " + normalize +
                             "}\n"
                             "model:\n  - {type: linear, out_features: 8}\n  - relu\n"
                             "  - {type: linear, out_features: 3}\n"
                             "optimizer: {type: adam, lr: 0.05}\n"
                             "train: {epochs: 8, batch_size: 10, threads: 1}\n" +
                             more);
    const Ended ended = train();
    ASSERT_EQ(ended.code, 0) << ended.err;
  }
  Ended predict(const std::string& input, const std::string& out = "out.csv") const {
    return run_lacuna({"predict", run_dir(), folder_ / input, "--out", folder_ / out});
  }
};

}  // namespace lacuna
