#include "lacuna/layers/parallel.h"

#include <gmock/gmock.h>

#include <cmath>
#include <vector>

#include "lacuna/framework/core/error.h"
#include "lacuna/framework/nn/sequential.h"
#include "lacuna/layers/activations.h"
#include "lacuna/layers/linear.h"
#include "throws.h"

namespace lacuna::parallel_test {
namespace {

using testing::ElementsAre;

// Gives its input reshaped, for outputs that fit nothing.
class Other final : public Module {
 public:
  struct Options {
    Shape shape;
  };
  explicit Other(const Options& options) : shape_(options.shape) {}
  std::string_view type() const override { return "other"; }
  Shape output_shape(const Shape&) const override { return shape_; }

 protected:
  Variable forward(const Variable& input) override { return input; }

 private:
  Shape shape_;
};

TEST(Parallel, PutsOutputsSideBySide) {
  Parallel parallel;
  parallel.add<ReLU>("relu");
  auto& fc = parallel.add<Linear>("fc", {.in_features = 2, .out_features = 1, .bias = false});
  fc.weight()->assign(Tensor::full({1, 2}, 1.0f));
  const Tensor x = Tensor::from({2, 2}, std::vector<float>{1, -2, 3, 5});
  EXPECT_THAT(parallel(x).value().to_vector(), ElementsAre(1, 0, -1, 3, 5, 8));
  EXPECT_EQ(parallel(x).shape(), (Shape{2, 3}));
  EXPECT_EQ(parallel.output_shape({2}), (Shape{3}));
  EXPECT_EQ(parallel.output_shape({7, 2}), (Shape{7, 3}));
  EXPECT_EQ(parallel.type(), "parallel");
  EXPECT_EQ(parallel.child_inputs({7, 2}), (std::vector<Shape>{{7, 2}, {7, 2}}));
}

TEST(Parallel, JoinsTheChannelsOfImages) {
  Parallel parallel;
  parallel.add<ReLU>("a");
  parallel.add<Tanh>("b");
  EXPECT_EQ(parallel.output_shape({3, 4, 5}), (Shape{6, 4, 5}));
  const Tensor x = Tensor::from({2, 1, 1, 2}, std::vector<float>{1, 0, 2, 0});
  const Variable y = parallel(x);
  EXPECT_EQ(y.shape(), (Shape{2, 2, 1, 2}));
  EXPECT_THAT(y.value().to_vector(),
              ElementsAre(1, 0, std::tanh(1.0f), 0, 2, 0, std::tanh(2.0f), 0));
}

TEST(Parallel, AddsNoLevelToPaths) {
  Sequential model;
  auto& parallel = model.add<Sequential>("attn").add<Parallel>("qkv");
  parallel.add<Linear>("q", {.in_features = 2, .out_features = 2, .bias = false});
  parallel.add<Sequential>("k").add<Linear>("fc",
                                            {.in_features = 2, .out_features = 2, .bias = false});
  EXPECT_EQ(parallel.path(), "attn.qkv");
  EXPECT_EQ(model.parameters()[0]->name(), "attn.q.weight");
  EXPECT_EQ(model.parameters()[1]->name(), "attn.k.fc.weight");
}

TEST(Parallel, RefusesWhatDoesNotFit) {
  Sequential model;
  auto& parallel = model.add<Parallel>("qkv");
  expect_throws<ShapeError>([&] { parallel.output_shape({2}); },
                            "layer 'qkv' (parallel) has no branches");
  expect_throws<ShapeError>([&] { parallel(Tensor::zeros({1, 2})); }, "at least one input");
  parallel.add<ReLU>("a");
  parallel.add<Other>("b", {.shape = Shape{3, 2}});
  expect_throws<ShapeError>(
      [&] {
        parallel.output_shape({2, 2});
      },
      "layer 'qkv' (parallel): 'b' gives shape [3, 2], which cannot be concatenated with [2, 2] of "
      "the branches before it");
  EXPECT_EQ(parallel.output_shape({3, 5}), (Shape{3, 7}));
}

TEST(Parallel, SideBySideComparesAllButOneDimension) {
  EXPECT_EQ(Parallel::side_by_side({2}, {3}), (Shape{5}));
  EXPECT_EQ(Parallel::side_by_side({4, 2}, {4, 3}), (Shape{4, 5}));
  EXPECT_EQ(Parallel::side_by_side({2, 4, 5}, {3, 4, 5}), (Shape{5, 4, 5}));
  EXPECT_EQ(Parallel::side_by_side({2, 4, 5}, {2, 4, 6}), std::nullopt);
  EXPECT_EQ(Parallel::side_by_side({4, 2}, {2}), std::nullopt);
  EXPECT_EQ(Parallel::side_by_side({}, {}), std::nullopt);
}

}  // namespace
}  // namespace lacuna::parallel_test
