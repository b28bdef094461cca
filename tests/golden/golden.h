// What the golden tests share: where the files are, walking them, and comparing numbers.
#pragma once

#include <gmock/gmock.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <iostream>
#include <span>
#include <string>
#include <vector>

#include "lacuna/framework/core/tensor.h"
#include "lacuna/framework/io/hdf5/hdf5_file.hpp"
#include "paths.h"

namespace lacuna::golden {

/// The folder LACUNA_GOLDEN_DIR, or the project's copy.
inline std::string folder() {
  const char* given = std::getenv("LACUNA_GOLDEN_DIR");
  return given != nullptr ? std::string(given) : std::string(kSourceFolder) + "/tests/golden";
}

/// A golden file from there.
inline Hdf5File open(const std::string& name) { return Hdf5File::open(folder() + "/" + name); }

/// The children of a group; the test fails when there are none. Prints their number.
inline std::vector<std::string> cases(const Hdf5File& file, const std::string& group) {
  std::vector<std::string> names = file.children(group);
  EXPECT_FALSE(names.empty()) << file.path() << ": " << group << " is empty";
  std::cout << group << ": " << names.size() << " cases\n";
  return names;
}

/// Relative 1e-5 and absolute 1e-6: libraries differ in exp and in the order of sums. Where
/// elements are above 1 the absolute part is of the largest: what a sum of such products leaves
/// when they cancel is rounded as they are (PyTorch's own float32 sums are that far from exact
/// ones).
inline void expect_near(std::span<const float> actual, std::span<const float> expected,
                        const std::string& what) {
  ASSERT_EQ(actual.size(), expected.size()) << what;
  ASSERT_FALSE(expected.empty()) << what;
  float largest = 1.0f;
  for (const float value : expected) largest = std::max(largest, std::abs(value));
  for (size_t i = 0; i < actual.size(); ++i) {
    ASSERT_NEAR(actual[i], expected[i], 1e-6f * largest + 1e-5f * std::abs(expected[i]))
        << what << ", element " << i;
  }
}

/// The same for tensors. Shapes need not agree (PyTorch's scalars are stored as [1]), numbers of
/// elements must.
inline void expect_close(const Tensor& found, const Tensor& expected, const std::string& what) {
  ASSERT_TRUE(found.defined()) << what;
  expect_near(found.to_vector(), expected.to_vector(), what);
}

/// To be called at the end of a walk: fails when nothing was checked, and says how much was.
inline void report(const std::string& file, int cases) {
  EXPECT_GT(cases, 0) << file << " holds no case";
  std::cout << file << ": " << cases << " cases\n";
}

}  // namespace lacuna::golden
