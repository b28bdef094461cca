#include "lacuna/framework/model/presets/foreign_names.hpp"

#include <gtest/gtest.h>

#include <numeric>
#include <set>
#include <string>
#include <vector>

namespace lacuna::foreign_names_test {
namespace {

TEST(ForeignName, FindsPrefixesOnEitherSide) {
  const std::set<std::string> known = {"transformer.h.0.ln_1.weight", "encoder.layer.0.w",
                                       "bert.embeddings.LayerNorm.bias", "model.norm.weight",
                                       "cls.predictions.decoder.bias"};
  const auto meant = [&](const std::string& name) {
    return foreign_name(name, known).value_or("nothing");
  };
  EXPECT_EQ(meant("h.0.ln_1.weight"), "transformer.h.0.ln_1.weight");
  EXPECT_EQ(meant("bert.encoder.layer.0.w"), "encoder.layer.0.w");
  EXPECT_EQ(meant("vit.encoder.layer.0.w"), "encoder.layer.0.w");
  EXPECT_EQ(meant("bert.embeddings.LayerNorm.beta"), "bert.embeddings.LayerNorm.bias");
  EXPECT_EQ(meant("embeddings.LayerNorm.beta"), "bert.embeddings.LayerNorm.bias");
  EXPECT_EQ(meant("norm.gamma"), "model.norm.weight");
  EXPECT_EQ(meant("cls.predictions.bias"), "cls.predictions.decoder.bias");
  EXPECT_EQ(meant("h.1.ln_1.weight"), "nothing");
  EXPECT_EQ(meant("module.h.0.ln_1.weight"), "nothing");
}

TEST(ForeignName, TransposesInTiles) {
  std::vector<float> values(35 * 67);
  std::iota(values.begin(), values.end(), 0.0f);
  const Tensor turned = transposed(Tensor::from({35, 67}, values));
  EXPECT_EQ(turned.shape(), (Shape{67, 35}));
  for (int64_t i = 0; i < 35; ++i) {
    for (int64_t j = 0; j < 67; ++j) {
      ASSERT_EQ(turned.data()[j * 35 + i], static_cast<float>(i * 67 + j));
    }
  }
  EXPECT_EQ(transposed(turned).to_vector(), values);
}

TEST(ForeignName, KnowsWhatIsNoWeight) {
  for (const char* name :
       {"bn1.num_batches_tracked", "num_batches_tracked", "h.0.attn.bias", "h.0.attn.masked_bias",
        "bert.embeddings.position_ids", "model.layers.0.self_attn.rotary_emb.inv_freq"}) {
    EXPECT_TRUE(is_bookkeeping(name, 4)) << name;
  }
  EXPECT_FALSE(is_bookkeeping("h.0.attn.c_attn.bias", 1));
  EXPECT_FALSE(is_bookkeeping("h.0.attn.bias", 1));  // of a layer of that name
}

TEST(ForeignName, KnowsWhatGpt2HoldsTransposed) {
  for (const char* name : {"h.0.attn.c_attn.weight", "transformer.h.11.attn.c_proj.weight",
                           "h.1.mlp.c_fc.weight", "h.1.mlp.c_proj.weight"}) {
    EXPECT_TRUE(is_conv1d_weight(name)) << name;
  }
  for (const char* name : {"h.0.attn.c_attn.bias", "wte.weight", "mlp.c_fc2.weight"}) {
    EXPECT_FALSE(is_conv1d_weight(name)) << name;
  }
}

}  // namespace
}  // namespace lacuna::foreign_names_test
