// What the tests of other tools' weights and masks share.
#pragma once

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "framework/io/storage/npz_bytes.h"
#include "framework/io/storage/safetensors_bytes.h"
#include "lacuna/framework/io/storage/array_file.hpp"
#include "lacuna/framework/io/storage/safetensors_file.hpp"
#include "lacuna/framework/nn/sequential.h"
#include "lacuna/layers/linear.h"
#include "temporary_folder.h"

namespace lacuna {

// fc.weight [4, 8], fc.bias [4].
class ImportedWeights : public testing::Test {
 protected:
  ImportedWeights() {
    model_.add<Linear>("fc", {.in_features = 8, .out_features = 4});
    model_.initialize(1);
  }
  static Tensor counted(int64_t rows = 4) {
    std::vector<float> values;
    for (int64_t i = 0; i < rows * 8; ++i) values.push_back(static_cast<float>(i + 1));
    return Tensor::from({rows, 8}, values);
  }
  static ByteArray every_third() {
    ByteArray mask{.shape = {4, 8}, .values = {}};
    for (int i = 0; i < 32; ++i) mask.values.push_back(i % 3 == 0 ? 1 : 0);
    return mask;
  }
  static Tensor bias() { return Tensor::from({4}, std::vector<float>{1, 2, 3, 4}); }
  std::string npz(const std::vector<NamedArray>& arrays) {
    write_npz(folder_ / "w.npz", arrays);
    return folder_ / "w.npz";
  }
  std::string safetensors(const std::vector<NamedArray>& arrays) {
    write_safetensors_arrays(folder_ / "w.safetensors", arrays);
    return folder_ / "w.safetensors";
  }
  void expect_masked() {
    const ParameterPtr weight = model_.parameter("fc.weight");
    EXPECT_EQ(weight->mask(), every_third());
    const std::vector<float> values = weight->to_dense().to_vector();
    EXPECT_EQ(values[3], 4.0f);
    EXPECT_EQ(values[4], 0.0f);  // outside of the mask, whatever the file has there
    EXPECT_TRUE(model_.parameter("fc.bias")->pattern()->is_dense());
  }

  TemporaryFolder folder_;
  Sequential model_;
};

}  // namespace lacuna
