// Golden vectors: where they are, and how a test walks them.
#pragma once

#include <gtest/gtest.h>

#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include "lacuna/framework/core/tensor.h"
#include "lacuna/framework/io/hdf5_file.h"

namespace lacuna::golden {

/// Opens `name` in the folder LACUNA_GOLDEN_DIR, or else in the project's tests/golden.
inline Hdf5File open(const std::string& name) {
  const char* folder = std::getenv("LACUNA_GOLDEN_DIR");
  const std::string path = folder != nullptr ? folder : LACUNA_SOURCE_DIR "/tests/golden";
  return Hdf5File::open(path + "/" + name);
}

/// Fails at the first element that is off by more than 1e-5 relative and 1e-6 absolute. Shapes need
/// not agree (PyTorch's scalars are stored as [1]), numbers of elements must.
inline void expect_close(const Tensor& found, const Tensor& expected, const std::string& what) {
  ASSERT_TRUE(found.defined()) << what;
  const std::vector<float> a = found.to_vector(), b = expected.to_vector();
  ASSERT_EQ(a.size(), b.size()) << what;
  ASSERT_FALSE(b.empty()) << what;
  for (size_t i = 0; i < b.size(); ++i) {
    ASSERT_LE(std::abs(a[i] - b[i]), 1e-6f + 1e-5f * std::abs(b[i])) << what << " at " << i;
  }
}

/// To be called at the end of a walk: fails when nothing was checked, and says how much was.
inline void report(const std::string& file, int cases) {
  EXPECT_GT(cases, 0) << file << " holds no case";
  std::printf("%s: %d cases\n", file.c_str(), cases);
}

}  // namespace lacuna::golden
