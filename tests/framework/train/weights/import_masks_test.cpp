// Masks that come with weights of other tools: cstorch's and torch.nn.utils.prune's names, SciPy's
// matrices, patterns found from zeros.
#include <gmock/gmock.h>

#include "framework/train/weights/imported_weights.h"
#include "lacuna/framework/core/error.h"
#include "lacuna/framework/core/random.h"
#include "lacuna/framework/io/storage/array_file.hpp"
#include "lacuna/framework/io/storage/safetensors_file.hpp"
#include "lacuna/framework/io/yaml.h"
#include "lacuna/framework/train/parts/experiment.hpp"
#include "lacuna/framework/train/weights/model_file.h"
#include "throws.h"

namespace lacuna::import_masks_test {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;

class ImportedMasks : public ImportedWeights {};

TEST_F(ImportedMasks, MasksBesideWeightsAreTheirs) {
  const std::vector<NamedArray> arrays = {
      {"fc.weight", counted()}, {"fc.weight_mask", every_third()}, {"fc.bias", bias()}};
  for (const std::string& path : {npz(arrays), safetensors(arrays)}) {
    model_.initialize(1);
    const LoadedWeights loaded = load_weights(path, model_);
    expect_masked();
    EXPECT_THAT(loaded.masked, ElementsAre("fc.weight"));
    EXPECT_THAT(loaded.notes, Contains(HasSubstr("fc.weight: unstructured, 11 of 32 are nonzeros "
                                                 "(by the file's mask)")));
  }
}

TEST_F(ImportedMasks, MasksFollowTheirWeightsUnderOtherNames) {
  load_weights(safetensors({{"module.fc.weight", counted()},
                            {"module.fc.weight_mask", every_third()},
                            {"module.fc.bias", bias()}}),
               model_, {.rename = {{"module.*.weight", "*.weight"}, {"module.*", "*"}}});
  expect_masked();
}

TEST_F(ImportedMasks, TorchsPrunedNamesAreKnown) {
  load_weights(
      safetensors(
          {{"fc.weight_orig", counted()}, {"fc.weight_mask", every_third()}, {"fc.bias", bias()}}),
      model_);
  expect_masked();
}

// [[0, 2, …], [], [], [7 at column 3]] and what is no such matrix.
TEST_F(ImportedMasks, ScipysMatricesHaveTheirPositionsForAMask) {
  const auto csr = [&](std::vector<int32_t> indices, std::vector<int64_t> indptr,
                       std::vector<int64_t> shape = {4, 8}) {
    return npz({{"fc.weight.data", Tensor::from({2}, std::vector<float>{2, 7})},
                {"fc.weight.indices", std::move(indices)},
                {"fc.weight.indptr", std::move(indptr)},
                {"fc.weight.shape", std::move(shape)},
                {"fc.bias", bias()}});
  };
  load_weights(csr({1, 3}, {0, 1, 1, 1, 2}), model_);
  const ParameterPtr weight = model_.parameter("fc.weight");
  EXPECT_EQ(weight->pattern()->nnz(), 2);
  EXPECT_EQ(weight->to_dense().data()[1], 2.0f);
  EXPECT_EQ(weight->to_dense().data()[27], 7.0f);
  const auto refused = [&](const std::string& path, const std::string& words) {
    expect_throws<CheckpointError>([&] { load_weights(path, model_); }, words);
  };
  refused(csr({1, 8}, {0, 1, 1, 1, 2}), "are not a csr matrix");
  refused(csr({3, 1}, {0, 2, 2, 2, 2}), "sum_duplicates()");
  refused(csr({1, -1}, {0, 1, 1, 1, 2}), "an index is not a column");
  refused(csr({1, 3, 5}, {0, 1, 1, 1, 3}), "2 values for 3 indices");
  refused(csr({1, 3}, {0, 1, 1, 2}), "are not a csr matrix");
  refused(csr({1, 3}, {0, 1, 1, 1, 2}, {4, -8}), "'fc.weight.shape'");
  refused(csr({1, 3}, {0, 1, 1, 1, 2}, {1 << 30, 1 << 30}), "'fc.weight' is [4, 8] in the model");
}

TEST_F(ImportedMasks, AFullMaskIsNone) {
  const ByteArray full{.shape = {4, 8}, .values = std::vector<uint8_t>(32, 1)};
  load_weights(npz({{"fc.weight", counted()}, {"fc.weight_mask", full}, {"fc.bias", bias()}}),
               model_);
  EXPECT_TRUE(model_.parameter("fc.weight")->pattern()->is_dense());
}

TEST_F(ImportedMasks, AMaskCanBeSkipped) {
  load_weights(
      npz({{"fc.weight", counted()}, {"fc.weight_mask", every_third()}, {"fc.bias", bias()}}),
      model_, {.skip = {"*_mask"}});
  EXPECT_TRUE(model_.parameter("fc.weight")->pattern()->is_dense());
}

TEST_F(ImportedMasks, MasksThatCannotBeAreRefused) {
  const auto refused = [&](const std::vector<NamedArray>& arrays, const std::string& words) {
    expect_throws<CheckpointError>([&] { load_weights(npz(arrays), model_); }, words);
  };
  refused({{"fc.weight", counted()},
           {"fc.weight_mask", ByteArray{.shape = {32}, .values = std::vector<uint8_t>(32)}},
           {"fc.bias", bias()}},
          "the mask 'fc.weight_mask'");
  refused({{"fc.weight", counted()}, {"fc.weight_mask", counted()}, {"fc.bias", bias()}},
          "a value other than 0 and 1 (its element 1,");
  refused({{"fc.weight", counted()}, {"fc.bias", bias()}, {"other_mask", every_third()}},
          "'other_mask' [4, 8] is in the file only");
}

TEST_F(ImportedMasks, PatternsAreFoundFromZerosWhenAsked) {
  std::vector<float> values = counted().to_vector();
  for (size_t i = 0; i < values.size(); ++i) {
    if ((i + i / 8) % 4 < 2) values[i] = 0.0f;  // two of four, other ones in each row
  }
  const std::string path =
      safetensors({{"fc.weight", Tensor::from({4, 8}, values)}, {"fc.bias", bias()}});
  load_weights(path, model_);
  EXPECT_TRUE(model_.parameter("fc.weight")->pattern()->is_dense());
  const LoadedWeights loaded = load_weights(path, model_, {.find_pattern = true});
  const ParameterPtr weight = model_.parameter("fc.weight");
  EXPECT_TRUE(weight->pattern()->layout().name().starts_with("nm 2:4"));
  EXPECT_EQ(weight->pattern()->nnz(), 16);
  EXPECT_EQ(weight->to_dense().to_vector(), values);
  EXPECT_THAT(loaded.notes, Contains(HasSubstr("fc.weight: 2:4")));
}

// A static section goes on with the masks that were loaded, and zeros stay zeros; where it asks for
// more of them, the smallest |w| of what was loaded go.
TEST_F(ImportedMasks, StaticSparsityKeepsThem) {
  const std::string weights =
      npz({{"fc.weight", counted()}, {"fc.weight_mask", every_third()}, {"fc.bias", bias()}});
  const std::string data =
      "data: {type: synthetic, train_size: 64, test_size: 16, features: 8, classes: 4}\n"
      "optimizer: {type: sgd, lr: 0.1}\n"
      "train: {steps: 3, batch_size: 16}\n"
      "model:\n"
      "  init_from: " +
      weights +
      "\n"
      "  layers: [{type: linear, name: fc, out_features: 4}]\n";
  for (const char* sparsity :
       {"sparsity: {sparsity: 0.9, param_filter: fc.weight}\n",
        "sparsity: {algorithm: static, sparsity: 0.5, param_filter: fc.weight}\n",
        "sparsity: {param_filter: fc.weight}\n",
        "sparsity: [{algorithm: static, sparsity: 0.9, param_filter: default}]\n"}) {
    const auto experiment = build_experiment(parse_yaml(data + sparsity, "run.yaml"));
    const ParameterPtr weight = experiment->model->parameter("fc.weight");
    const bool asks_for_more = std::string_view(sparsity).find("0.9") != std::string_view::npos;
    const std::vector<float> values = weight->to_dense().to_vector();
    if (asks_for_more) {  // of 11 that count upwards the last 3
      EXPECT_EQ(weight->pattern()->nnz(), 3) << sparsity;
      for (const size_t i : {24, 27, 30}) {
        EXPECT_EQ(values[i], static_cast<float>(i + 1)) << sparsity;
      }
    } else {
      EXPECT_EQ(weight->mask(), every_third()) << sparsity;
      EXPECT_EQ(values[3], 4.0f);
    }
    EXPECT_EQ(weight->sparsified_by, "static");
    EXPECT_THAT(experiment->config.to_yaml(), HasSubstr("init_method: inherit"));
  }
  const auto dynamic = build_experiment(parse_yaml(
      data +
          "sparsity: {algorithm: set, sparsity: 0.5, update: {freq: 2}, param_filter: fc.weight}\n",
      "run.yaml"));
  EXPECT_EQ(dynamic->model->parameter("fc.weight")->mask(), every_third());
  EXPECT_THAT(dynamic->notes, Contains(HasSubstr("init_method: inherit")));
  const auto random = build_experiment(
      parse_yaml(data + "sparsity: {sparsity: 0.5, init_method: random, param_filter: fc.weight}\n",
                 "run.yaml"));
  EXPECT_EQ(random->model->parameter("fc.weight")->pattern()->nnz(), 16);
}

}  // namespace
}  // namespace lacuna::import_masks_test
