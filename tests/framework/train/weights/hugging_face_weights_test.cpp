// Weights of Hugging Face's files: prefixes, old endings, GPT-2's transposed weights, tied heads.
#include <gmock/gmock.h>

#include <numeric>
#include <string>
#include <vector>

#include "lacuna/framework/core/error.h"
#include "lacuna/framework/io/storage/safetensors_file.hpp"
#include "lacuna/framework/nn/sequential.h"
#include "lacuna/framework/train/weights/model_file.h"
#include "lacuna/layers/linear.h"
#include "lacuna/layers/norms.h"
#include "lacuna/layers/tied_linear.h"
#include "temporary_folder.h"
#include "throws.h"

namespace lacuna::hugging_face_weights_test {
namespace {

using testing::ElementsAre;
using Named = std::vector<std::pair<std::string, Tensor>>;

Tensor counted(const Shape& shape, float first = 0.0f) {
  std::vector<float> values(static_cast<size_t>(shape.numel()));
  std::iota(values.begin(), values.end(), first);
  return Tensor::from(shape, values);
}

// A GPT-2 without attention: transformer.{wte [5, 2], h.0.{ln_1, attn.c_attn, attn.c_proj}}, and a
// head tied to wte.
class Gpt2File : public testing::Test {
 protected:
  Gpt2File() {
    auto trunk = std::make_unique<Sequential>();
    trunk->add<Linear>("wte", {.in_features = 2, .out_features = 5, .bias = false});
    trunk->add<LayerNorm>("h.0.ln_1", {.features = 2});
    trunk->add<Linear>("h.0.attn.c_attn", {.in_features = 2, .out_features = 6});
    trunk->add<Linear>("h.0.attn.c_proj", {.in_features = 2, .out_features = 2});
    model_.add("transformer", std::move(trunk));
    model_.add<TiedLinear>("lm_head",
                           {.weight = model_.parameter("transformer.wte.weight"), .bias = false});
    model_.initialize(1);
  }
  // As GPT-2's files have them, without the prefix.
  static Named tensors(const std::string& prefix = "") {
    return {{prefix + "wte.weight", counted({5, 2}, 10)},
            {prefix + "h.0.ln_1.weight", counted({2}, 1)},
            {prefix + "h.0.ln_1.bias", counted({2}, 3)},
            {prefix + "h.0.attn.c_attn.weight", counted({2, 6})},
            {prefix + "h.0.attn.c_attn.bias", counted({6})},
            {prefix + "h.0.attn.c_proj.weight", counted({2, 2}, 1)},
            {prefix + "h.0.attn.c_proj.bias", counted({2})}};
  }
  std::string write(const Named& values) {
    write_safetensors(folder_ / "model.safetensors", values);
    return folder_ / "model.safetensors";
  }
  std::vector<float> values(const std::string& name) const {
    return model_.parameter(name)->to_dense().to_vector();
  }
  void refused(const Named& file, const std::string& message) {
    expect_throws<CheckpointError>([&] { load_weights(write(file), model_); }, message);
  }

  TemporaryFolder folder_;
  Sequential model_;
};

TEST_F(Gpt2File, IsLoadedWithAndWithoutItsPrefix) {
  for (const char* prefix : {"", "transformer."}) {
    model_.initialize(2);
    Named file = tensors(prefix);
    file.emplace_back(std::string(prefix) + "h.0.attn.bias", Tensor::zeros({1, 1, 4, 4}));
    file.emplace_back(std::string(prefix) + "h.0.attn.masked_bias", Tensor::zeros({1}));
    load_weights(write(file), model_);
    EXPECT_EQ(values("transformer.wte.weight"), counted({5, 2}, 10).to_vector());
    EXPECT_THAT(values("transformer.h.0.ln_1.bias"), ElementsAre(3, 4));
    // [in, out] in the file, square or not.
    EXPECT_THAT(values("transformer.h.0.attn.c_attn.weight"),
                ElementsAre(0, 6, 1, 7, 2, 8, 3, 9, 4, 10, 5, 11));
    EXPECT_THAT(values("transformer.h.0.attn.c_proj.weight"), ElementsAre(1, 3, 2, 4));
  }
}

// As nanoGPT and lacuna have them.
TEST_F(Gpt2File, IsNotTransposedWhereItHoldsOrdinaryLinearLayers) {
  Named file = tensors();
  file[3].second = counted({6, 2});
  load_weights(write(file), model_);
  EXPECT_EQ(values("transformer.h.0.attn.c_attn.weight"), counted({6, 2}).to_vector());
  EXPECT_THAT(values("transformer.h.0.attn.c_proj.weight"), ElementsAre(1, 2, 3, 4));
}

// Where all weights of such names are square, nothing says that they are GPT-2's; and a bias of a
// layer `attn` is none of its buffers.
TEST(SquareWeights, StayAsTheyAre) {
  const TemporaryFolder folder;
  Sequential model;
  model.add<Linear>("block.attn.c_proj", {.in_features = 2, .out_features = 2});
  model.add<Linear>("block.attn", {.in_features = 2, .out_features = 2, .bias = false});
  Named file = {{"block.attn.c_proj.weight", counted({2, 2}, 1)},
                {"block.attn.c_proj.bias", counted({2})},
                {"block.attn.weight", counted({2, 2})}};
  write_safetensors(folder / "m.safetensors", file);
  load_weights(folder / "m.safetensors", model);
  EXPECT_THAT(model.parameter("block.attn.c_proj.weight")->to_dense().to_vector(),
              ElementsAre(1, 2, 3, 4));
  file.emplace_back("block.attn.bias", counted({2}));
  write_safetensors(folder / "m.safetensors", file);
  expect_throws<CheckpointError>([&] { load_weights(folder / "m.safetensors", model); },
                                 "'block.attn.bias' [2] is in the file only");
}

TEST_F(Gpt2File, OldEndingsOfNormsAreKnown) {
  Named file = tensors();
  file[1].first = "h.0.ln_1.gamma";
  file[2].first = "h.0.ln_1.beta";
  load_weights(write(file), model_);
  EXPECT_THAT(values("transformer.h.0.ln_1.weight"), ElementsAre(1, 2));
  EXPECT_THAT(values("transformer.h.0.ln_1.bias"), ElementsAre(3, 4));
}

TEST_F(Gpt2File, MayHoldTheTiedHeadWhereItIsTheSame) {
  Named file = tensors("transformer.");
  file.emplace_back("lm_head.weight", counted({5, 2}, 10));
  load_weights(write(file), model_);
  EXPECT_EQ(values("transformer.wte.weight"), counted({5, 2}, 10).to_vector());
  file.back().second = counted({5, 2}, 11);
  refused(file,
          "'lm_head.weight' has values of its own in the file, but is tied to "
          "'transformer.wte.weight' in the model");
  load_weights(write(file), model_, {.rename = {}, .skip = {"lm_head.weight"}});
}

TEST_F(Gpt2File, RefusesTwoNamesForOneThatDiffer) {
  Named file = tensors();
  file.emplace_back("transformer.h.0.ln_1.bias", counted({2}, 3));
  load_weights(write(file), model_);
  file.back().second = counted({2}, 4);
  refused(file,
          "'h.0.ln_1.bias' and 'transformer.h.0.ln_1.bias' of the file are the same parameter, but "
          "differ");
}

TEST_F(Gpt2File, NamesShapesAsTheyAreStored) {
  Named file = tensors();
  file[3].second = counted({2, 7});
  refused(file,
          "'transformer.h.0.attn.c_attn.weight' is [6, 2] in the model, [2, 7] in the file as "
          "'h.0.attn.c_attn.weight' (stored [in, out], as GPT-2's are)");
}

}  // namespace
}  // namespace lacuna::hugging_face_weights_test
