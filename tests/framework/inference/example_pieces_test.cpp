#include "lacuna/framework/inference/example_pieces.hpp"

#include <gtest/gtest.h>

#include "lacuna/framework/nn/sequential.h"
#include "lacuna/layers/activations.h"
#include "lacuna/layers/batch_norm.h"
#include "lacuna/layers/convolutions/conv2d.h"
#include "lacuna/layers/linear.h"
#include "lacuna/layers/residual.h"

namespace lacuna::example_pieces_test {
namespace {

constexpr int64_t kMany = 1'000'000'000;

TEST(ExamplePieces, HoldWhatFits) {
  Sequential model;
  model.add<Linear>("a", {.in_features = 1024, .out_features = 7168});
  model.add<Linear>("b", {.in_features = 7168, .out_features = 16});
  EXPECT_EQ(held_values(model, Shape{1024}), 1024 + 7168 + 16);  // all three, while b runs
  const ExamplePieces pieces = example_pieces(model, Shape{1024}, kMany);
  EXPECT_EQ(pieces.examples, int64_t{1 << 26} / (4 * (1024 + 7168 + 16)));
  EXPECT_EQ(pieces.rows, 0);
  EXPECT_LE(pieces.bytes, kPieceBytes);
  const ExamplePieces few = example_pieces(model, Shape{1024}, 10);
  EXPECT_EQ(few.examples, 10);
  EXPECT_EQ(few.bytes, 10.0 * 4 * (1024 + 7168 + 16));
}

TEST(ExamplePieces, CountWhatBranchesHold) {
  Sequential model;
  auto& block = model.add<Residual>("block");
  block.add<Linear>("up", {.in_features = 10, .out_features = 100});
  block.add<ReLU>("relu");
  block.add<Linear>("down", {.in_features = 100, .out_features = 10});
  // The input, both sides of relu, and the sum.
  EXPECT_EQ(held_values(model, Shape{10}), 10 + 200 + 10);
}

TEST(ExamplePieces, AreAtLeastAnExampleOrSixteenImages) {
  Sequential wide;
  wide.add<Linear>("a", {.in_features = 3, .out_features = 20'000'000});
  EXPECT_EQ(example_pieces(wide, Shape{3}, kMany).examples, 1);
  Sequential images;
  images.add<Conv2d>("a", {.in_channels = 3, .out_channels = 100, .kernel = {1, 1}});
  EXPECT_EQ(example_pieces(images, Shape{3, 512, 512}, kMany).examples, 16);
  EXPECT_EQ(example_pieces(images, Shape{3, 512, 512}, 5).examples, 5);
}

TEST(ExamplePieces, CutTheLastLayersRowsWhereAnExampleIsTooLarge) {
  Sequential model;
  model.add<Linear>("a", {.in_features = 8, .out_features = 24});
  Module& last = model.add<Linear>("b", {.in_features = 24, .out_features = 50000});
  const ExamplePieces pieces = example_pieces(model, Shape{1000, 8}, 100);
  EXPECT_EQ(last_row_layer(model), &last);
  EXPECT_EQ(pieces.examples, 100);
  EXPECT_EQ(pieces.rows, (1 << 26) / (4 * 50024));
  EXPECT_LE(pieces.bytes, 2 * kPieceBytes);
  EXPECT_EQ(example_pieces(model, Shape{100, 8}, 100).rows, 0);  // three examples fit
  model.add<ReLU>("relu");
  EXPECT_EQ(last_row_layer(model), nullptr);
  EXPECT_EQ(example_pieces(model, Shape{1000, 8}, 100).rows, 0);
}

TEST(ExamplePieces, AreTheWholeBatchWhereExamplesMix) {
  const auto expect = [](Module& model, bool mixes) {
    EXPECT_EQ(mixes_examples(model), mixes);
    EXPECT_EQ(example_pieces(model, Shape{4}, kMany).examples == kMany, mixes);
  };
  Sequential plain;
  plain.add<BatchNorm>("norm", {.channels = 4});
  expect(plain, false);
  plain.register_output_transform([](const Variable& x) { return x; });
  expect(plain, true);
  EXPECT_TRUE(sparsifies_activations(plain));
  Sequential by_batch;
  by_batch.add<BatchNorm>("norm", {.channels = 4, .track_running_stats = false});
  expect(by_batch, true);
  EXPECT_FALSE(sparsifies_activations(by_batch));
}

}  // namespace
}  // namespace lacuna::example_pieces_test
