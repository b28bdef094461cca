#include "lacuna/layers/tokens/attention.h"

#include <gtest/gtest.h>

#include "framework/kernels/test_values.h"
#include "lacuna/framework/autograd/tokens/attention.h"
#include "lacuna/framework/core/error.h"
#include "lacuna/framework/nn/module_rows.h"
#include "lacuna/framework/nn/named_inputs.h"
#include "lacuna/framework/nn/sequential.h"
#include "lacuna/layers/linear.h"
#include "lacuna/layers/tokens/rotary.h"
#include "lacuna/layers/tokens/token_pooling.h"
#include "lacuna/layers/tokens/token_type_embedding.h"
#include "throws.h"

namespace lacuna::attention_test {
namespace {

std::vector<float> run(Module& module, const Tensor& x) { return module(x).value().to_vector(); }

TEST(AttentionLayer, IsTheOperationWithTheBatchsMask) {
  Attention layer({.heads = 4, .kv_heads = 2, .causal = true});
  const Tensor x = test::normal_tensor("x", {2, 5, 16});
  const AttentionOptions plain{.heads = 4, .kv_heads = 2, .causal = true};
  EXPECT_EQ(run(layer, x), attention(x, plain).value().to_vector());
  EXPECT_EQ(layer.output_shape({5, 16}), (Shape{5, 8}));

  const IndexTensor mask({2, 5}, {1, 1, 0, 0, 1, 1, 0, 1, 1, 1});
  const NamedTensors batch{{"attention_mask", mask}};
  const NamedInputs scope(batch);
  AttentionOptions masked = plain;
  masked.key_mask = mask;
  EXPECT_EQ(run(layer, x), attention(x, masked).value().to_vector());
  Attention unmasked({.heads = 4, .kv_heads = 2, .causal = true, .mask = ""});
  EXPECT_EQ(run(unmasked, x), attention(x, plain).value().to_vector());
}

TEST(AttentionLayer, DropsWhileTrainingAndCountsItsCalls) {
  Sequential saved, loaded;
  auto& from = saved.add<Attention>("attn", {.heads = 1, .dropout = 0.5});
  auto& to = loaded.add<Attention>("attn", {.heads = 1, .dropout = 0.5});
  saved.initialize(1);
  loaded.initialize(1);
  const Tensor x = test::normal_tensor("x", {2, 9, 6});
  const auto first = run(from, x);
  EXPECT_NE(run(from, x), first);
  EXPECT_EQ(saved.state_dict().get<int64_t>("attn/calls"), 2);
  EXPECT_EQ(run(to, x), first);
  loaded.load_state_dict(saved.state_dict());
  EXPECT_EQ(run(to, x), run(from, x));
  saved.eval();
  EXPECT_EQ(run(from, x), attention(x, {.heads = 1}).value().to_vector());
}

TEST(AttentionLayer, RefusesWhatDoesNotFit) {
  Sequential model;
  auto& layer = model.add<Attention>("attn", {.heads = 2});
  expect_throws<ShapeError>(
      [&] {
        layer.output_shape({5, 8});
      },
      "layer 'attn' (attention): 2 heads of queries and 2 of keys and values need features that "
      "are a multiple of 6, found shape [5, 8]");
  expect_throws<ShapeError>([&] { layer.output_shape({12}); },
                            "needs examples of shape [T, (heads + 2 kv_heads) d], found [12]");
  expect_throws<ConfigError>(
      [] { Attention({.heads = 4, .kv_heads = 3}); },
      "attention: heads must be at least 1 and a multiple of kv_heads, found 4 and 3");
  expect_throws<ConfigError>([] { Attention({.dropout = 1.0}); }, "dropout must be in [0, 1)");
}

TEST(AttentionLayer, NamesWhatTheBatchHasInPlaceOfItsMask) {
  Sequential model;
  auto& layer = model.add<Attention>("attn", {.heads = 1, .mask = "atention_mask"});
  auto& pool = model.add<MeanPool>("pool", {.mask = "masks"});
  auto& types = model.add<TokenTypeEmbedding>("types", {.features = 6, .input = "kinds"});
  const Tensor x = test::normal_tensor("x", {2, 3, 6});
  EXPECT_EQ(run(layer, x), attention(x, {.heads = 1}).value().to_vector());  // no batch at all
  const IndexTensor ones({2, 3}, {1, 1, 1, 1, 1, 1});
  const NamedTensors batch{{"input_ids", ones}, {"attention_mask", ones}}, bare;
  {
    const NamedInputs scope(batch);
    expect_throws<DataError>([&] { layer(x); },
                             "layer 'attn' (attention): the batch has no 'atention_mask'; it has "
                             "attention_mask, input_ids");
    expect_throws<DataError>([&] { pool(x); },
                             "layer 'pool' (mean_pool): the batch has no 'masks'; it has "
                             "attention_mask, input_ids");
    expect_throws<DataError>([&] { types(x); },
                             "layer 'types' (token_type_embedding): the batch has no 'kinds'; it "
                             "has attention_mask, input_ids, and 'token_type_ids' is optional");
  }
  const NamedInputs scope(bare);
  expect_throws<DataError>([&] { layer(x); }, "it has only its inputs");
  Attention usual({.heads = 1});
  EXPECT_EQ(run(usual, x), attention(x, {.heads = 1}).value().to_vector());
}

TEST(AttentionLayer, CountsItsProducts) {
  Sequential model;
  model.add<Attention>("attn", {.heads = 4, .kv_heads = 2});
  const auto all = [](const Parameter& p) { return p.numel(); };
  // Of each of 4 heads 10 × 10 pairs of 3 features, twice a multiplication and an addition.
  const Flops flops = count_flops(module_rows(model, {10, 24}), all);
  EXPECT_EQ(flops.forward, 2 * 2 * 4 * 10 * 10 * 3);
  EXPECT_EQ(flops.training, flops.forward);  // nobody wants a gradient
  Sequential trained;
  trained.add<Linear>("qkv", {.in_features = 5, .out_features = 24});
  trained.add<Attention>("attn", {.heads = 4, .kv_heads = 2});
  const int64_t linear = 2 * 10 * 5 * 24;
  EXPECT_EQ(count_flops(module_rows(trained, {10, 5}), all),
            (Flops{.forward = linear + flops.forward, .training = 2 * linear + 3 * flops.forward}));
  Sequential causal;
  causal.add<Attention>("attn", {.heads = 4, .kv_heads = 2, .causal = true});
  EXPECT_EQ(count_flops(module_rows(causal, {10, 24}), all).forward, 2 * 2 * 4 * 55 * 3);
}

TEST(RotaryLayer, IsTheOperation) {
  Sequential model;
  auto& layer = model.add<Rotary>("rope", {.heads = 2, .kv_heads = 1, .base = 100.0});
  const Tensor x = test::normal_tensor("x", {2, 5, 16});
  EXPECT_EQ(run(model, x),
            rotary(x, {.heads = 2, .kv_heads = 1, .base = 100.0}).value().to_vector());
  EXPECT_EQ(layer.output_shape({5, 16}), (Shape{5, 16}));
  expect_throws<ShapeError>(
      [&] {
        layer.output_shape({5, 12});
      },
      "layer 'rope' (rotary): needs an even number of features per head, found 3 of [5, 12]");
  expect_throws<ConfigError>([] { Rotary({.base = -1.0}); }, "rotary: base must be above 0");
}

TEST(AttentionLayer, NamesAMaskThatDoesNotFit) {
  Sequential model;
  model.add<Attention>("attn", {.heads = 1});
  const NamedTensors batch{{"attention_mask", IndexTensor({2, 4}, std::vector<int64_t>(8, 1))}};
  const NamedInputs scope(batch);
  expect_throws<ShapeError>(
      [&] {
        model(Tensor::zeros({2, 5, 6}));
      },
      "layer 'attn' (attention): sequences of shape [2, 5, 6] need a mask of "
      "shape [2, 5], and 'attention_mask' has [2, 4]; give another one as "
      "`mask`, or \"\" for none; in place of a class_token");
}

}  // namespace
}  // namespace lacuna::attention_test
