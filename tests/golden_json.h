// Golden vectors in JSON files, which Python programs next to them compute with NumPy alone.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "lacuna/framework/config/named_tensors.h"
#include "lacuna/framework/io/yaml.h"
#include "lacuna/framework/nn/module.h"
#include "paths.h"

namespace lacuna::golden_json {

/// A file under tests/.
inline Config load(const std::string& file) {
  return load_yaml(std::string(kSourceFolder) + "/tests/" + file);
}

inline std::vector<float> floats(const Config& list) {
  const auto values = list.as<std::vector<double>>();
  return {values.begin(), values.end()};
}

inline std::vector<std::vector<int64_t>> lists(const Config& list) {
  std::vector<std::vector<int64_t>> all;
  for (const Config& one : list.items()) all.push_back(one.as<std::vector<int64_t>>());
  return all;
}

inline IndexTensor integers(const Shape& shape, const Config& list) {
  return {shape, list.as<std::vector<int64_t>>()};
}

/// Parameters and buffers, by their names.
inline void set_arrays(Module& model, const Config& arrays) {
  for (const ParameterPtr& parameter : model.parameters()) {
    parameter->assign(Tensor::from(parameter->shape(), floats(arrays.at(parameter->name()))));
  }
  for (const auto& [name, buffer] : model.buffers()) {
    *buffer = Tensor::from(buffer->shape(), floats(arrays.at(name)));
  }
}

/// The tolerance is a fraction of the largest expected value.
inline void expect_close(const std::vector<float>& found, const std::vector<float>& expected,
                         float tolerance, const std::string& what) {
  ASSERT_EQ(found.size(), expected.size()) << what;
  float largest = 0.0f;
  for (const float value : expected) largest = std::max(largest, std::abs(value));
  for (size_t i = 0; i < found.size(); ++i) {
    ASSERT_NEAR(found[i], expected[i], tolerance * largest) << what << " " << i;
  }
}

}  // namespace lacuna::golden_json
