// Batch normalizations folded into the weights before them: what the model gives stays what it was,
// and what cannot be folded is left.
#include "lacuna/framework/inference/fold_batch_norm.hpp"

#include <gmock/gmock.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "framework/kernels/test_values.h"
#include "framework/train/tiny_convolution.h"
#include "lacuna/framework/autograd/ops/activation.h"
#include "lacuna/framework/core/error.h"
#include "lacuna/framework/io/yaml.h"
#include "lacuna/framework/train/builtins.h"
#include "lacuna/framework/train/model_builder.hpp"
#include "lacuna/layers/batch_norm.h"
#include "lacuna/layers/linear.h"
#include "lacuna/sparsity/configure.h"
#include "throws.h"

namespace lacuna::fold_batch_norm_test {
namespace {

const Shape kImage{3, 8, 6};

// As after training: no number of a batch_norm is what it begins with.
void disturb(Module& model) {
  for (const ParameterPtr& parameter : model.parameters()) {
    if (parameter->shape().rank() > 1 || !parameter->pattern()->is_dense()) continue;
    parameter->assign(test::normal_tensor(parameter->name(), parameter->shape()));
  }
  for (const auto& [name, values] : model.buffers()) {
    Tensor moments = test::normal_tensor(name, values->shape());
    if (name.ends_with("running_var")) {
      for (float& v : moments.mutable_storage()) v = 0.5f + std::abs(v);
    }
    *values = moments;
  }
}

std::unique_ptr<Sequential> build(const std::string& yaml, const Shape& example = kImage) {
  register_builtins();
  const Config model = parse_yaml(yaml, "m.yaml");
  auto built = build_model(model_layers(model), example);
  built->initialize(5);
  disturb(*built);
  built->eval();
  return built;
}

Tensor batch_of(const Shape& example, int64_t examples) {
  std::vector<int64_t> sizes{examples};
  sizes.insert(sizes.end(), example.sizes().begin(), example.sizes().end());
  return test::normal_tensor("input", Shape(sizes));
}

std::vector<float> outputs(Module& model, const Shape& example, int64_t examples) {
  const NoGrad no_grad;
  return model(batch_of(example, examples)).value().to_vector();
}

// Folds so many, and the outputs differ by rounding: a few units of 2⁻²⁴ in each of a few layers.
void expect_folds(Module& model, int64_t folded, const Shape& example = kImage) {
  const std::vector<float> whole = outputs(model, example, 5), one = outputs(model, example, 1);
  EXPECT_EQ(fold_batch_norm(model, example), folded);
  for (const auto& [expected, found] :
       {std::pair(whole, outputs(model, example, 5)), std::pair(one, outputs(model, example, 1))}) {
    ASSERT_EQ(found.size(), expected.size());
    float largest = 0.0f;
    for (const float v : expected) largest = std::max(largest, std::abs(v));
    ASSERT_GT(largest, 0.0f);
    for (size_t i = 0; i < expected.size(); ++i) {
      ASSERT_NEAR(found[i], expected[i], 1e-5f * largest) << "element " << i;
    }
  }
}

void expect_folds(const std::string& yaml, int64_t folded, const Shape& example = kImage) {
  SCOPED_TRACE(yaml);
  expect_folds(*build(yaml, example), folded, example);
}

void make_sparse(Module& model, const std::string& sparsity) {
  const auto algorithm = configure(parse_yaml(sparsity, "sparsity"), 0);
  model.apply(*algorithm);
}

TEST(FoldBatchNorm, ConvolutionsWithAndWithoutBias) {
  for (const char* more : {"", ", bias: false", ", groups: 3", ", groups: 3, bias: false"}) {
    for (const char* behind : {"", ", relu", ", {type: max_pool, kernel: 2}", ", gelu"}) {
      expect_folds("[{type: conv2d, out_channels: 6, kernel: 3, padding: 1" + std::string(more) +
                       "}, batch_norm" + behind + "]",
                   1);
    }
  }
  expect_folds("[{type: conv2d, out_channels: 20, kernel: 1}, {type: batch_norm, affine: false}]",
               1);
}

TEST(FoldBatchNorm, LinearLayersWithAndWithoutBias) {
  for (const char* more : {"", ", bias: false"}) {
    for (const char* behind : {"", ", relu", ", {type: linear, out_features: 4}"}) {
      expect_folds("[flatten, {type: linear, out_features: 30" + std::string(more) +
                       "}, batch_norm" + behind + "]",
                   1);
    }
  }
  expect_folds(
      "[flatten, {type: residual, layers: [{type: linear, out_features: 144}, batch_norm]}, relu]",
      1);
}

TEST(FoldBatchNorm, ResidualNetworks) {
  expect_folds(kTinyConvolutionModel, 5, {3, 16, 16});
  // A shortcut with a norm of its own, and a sum that another sum takes.
  expect_folds(R"(
- {type: conv2d, name: stem, out_channels: 4, kernel: 3, padding: 1}
- batch_norm
- type: residual
  shortcut: [{type: conv2d, out_channels: 8, kernel: 1, stride: 2}, batch_norm]
  layers:
    - {type: conv2d, out_channels: 8, kernel: 3, stride: 2, padding: 1}
    - batch_norm
    - relu
    - {type: conv2d, out_channels: 8, kernel: 3, padding: 1}
    - batch_norm
- relu
- type: residual
  layers:
    - type: residual
      layers: [{type: conv2d, out_channels: 8, kernel: 3, padding: 1}, batch_norm]
- relu
)",
               5);
}

// A norm before a convolution stays, as do those whose neighbours are something else.
TEST(FoldBatchNorm, LeavesWhatIsNoConvolutionsOutputAlone) {
  expect_folds("[batch_norm, relu, {type: conv2d, out_channels: 4, kernel: 3}]", 0);
  expect_folds("[{type: conv2d, out_channels: 4, kernel: 3}, relu, batch_norm]", 0);
  expect_folds("[{type: conv2d, out_channels: 4, kernel: 3}, batch_norm, batch_norm]", 1);
  // What goes in is added behind it.
  expect_folds(
      "[{type: conv2d, out_channels: 4, kernel: 3}, {type: residual, layers: [batch_norm, "
      "relu]}]",
      0);
  expect_folds(
      "[{type: conv2d, out_channels: 4, kernel: 3}, {type: parallel, layers: [batch_norm, relu]}]",
      0);
  expect_folds(
      "[{type: residual, layers: [{type: conv2d, out_channels: 3, kernel: 1}]}, "
      "batch_norm]",
      0);
  expect_folds(
      "[{type: conv2d, out_channels: 4, kernel: 3}, {type: batch_norm, "
      "track_running_stats: false}]",
      0);
}

// Of [length, features] the norm's channels are not what the linear layer gives.
TEST(FoldBatchNorm, LeavesALinearLayerOfSequencesAlone) {
  expect_folds("[{type: linear, out_features: 5}, batch_norm, relu]", 0, {5, 7});
}

TEST(FoldBatchNorm, LooksThroughGroups) {
  expect_folds(
      "[{type: sequential, layers: [relu, {type: conv2d, out_channels: 4, kernel: 3}]}, "
      "{type: sequential, layers: [batch_norm, relu]}]",
      1);
  expect_folds(
      "[{type: parallel, layers: [{type: sequential, layers: [{type: conv2d, "
      "out_channels: 4, kernel: 1}, batch_norm]}, {type: conv2d, out_channels: 2, kernel: "
      "1}]}, batch_norm]",
      1);
}

TEST(FoldBatchNorm, ScalesTheRowsOfEveryLayout) {
  const std::string conv =
      "[{type: conv2d, name: conv, out_channels: 32, kernel: 3, padding: 1, bias: false}, "
      "batch_norm, relu, {type: conv2d, name: next, out_channels: 8, kernel: 3, bias: false}, "
      "batch_norm]";
  const Shape image{16, 7, 9};
  for (const char* sparsity : {"{sparsity: 0.8, layout: masked, ", "{sparsity: 0.8, layout: csr, ",
                               "{pattern: {type: nm, n: 2, m: 4}, layout: csr, "}) {
    SCOPED_TRACE(sparsity);
    const auto model = build(conv, image);
    make_sparse(*model, sparsity + std::string("param_filter: ['conv.weight', 'next.weight']}"));
    const auto layout_of = [&] {
      return model->parameter("conv.weight")->pattern()->layout().name();
    };
    const std::string layout(layout_of());
    EXPECT_NE(layout, "dense");
    expect_folds(*model, 2, image);
    EXPECT_EQ(layout_of(), layout);
  }
  const std::string linear =
      "[{type: linear, name: fc1, out_features: 48}, batch_norm, relu, {type: linear, name: fc2, "
      "out_features: 32, bias: false}, batch_norm]";
  for (const char* sparsity :
       {"{sparsity: 0.8, layout: masked, ", "{sparsity: 0.8, layout: csr, ",
        "{pattern: {type: nm, n: 2, m: 4}, layout: nm, ",
        "{pattern: {type: nm, n: 1, m: 4, group: 4}, layout: nm, ",
        "{sparsity: 0.7, pattern: {type: block, rows: 8, cols: 8}, layout: block, "}) {
    SCOPED_TRACE(sparsity);
    const auto model = build(linear, {64});
    make_sparse(*model, sparsity + std::string("param_filter: ['fc1.weight', 'fc2.weight']}"));
    EXPECT_LT(model->parameter("fc2.weight")->pattern()->nnz(), 48 * 32);
    expect_folds(*model, 2, {64});
  }
}

// A bias with a mask gets a shift in every place.
TEST(FoldBatchNorm, ASparseBiasBecomesDense) {
  const auto model = build("[{type: linear, name: fc, out_features: 40}, batch_norm]", {12});
  make_sparse(*model, "{sparsity: 0.5, layout: masked, param_filter: 'fc.bias'}");
  ASSERT_EQ(model->parameter("fc.bias")->pattern()->nnz(), 20);
  expect_folds(*model, 1, {12});
  EXPECT_TRUE(model->parameter("fc.bias")->pattern()->is_dense());
}

TEST(FoldBatchNorm, LeavesWhatIsTransformedOnTheWayAlone) {
  const char* yaml =
      "[{type: conv2d, name: conv, out_channels: 4, kernel: 3}, {type: batch_norm, name: norm}]";
  const auto child = [](Sequential& model, size_t i) { return model.children()[i].second; };
  const auto of_output = build(yaml), of_input = build(yaml), of_others = build(yaml);
  child(*of_output, 0)->register_output_transform([](const Variable& x) { return relu(x); });
  expect_folds(*of_output, 0);
  child(*of_input, 1)->register_input_transform([](const Variable& x) { return relu(x); });
  expect_folds(*of_input, 0);
  child(*of_others, 0)->register_input_transform([](const Variable& x) { return relu(x); });
  child(*of_others, 1)->register_output_transform([](const Variable& x) { return relu(x); });
  expect_folds(*of_others, 1);
  // And on the way out of a group that ends with the convolution.
  const auto group = build(
      "[{type: sequential, layers: [{type: conv2d, out_channels: 4, kernel: "
      "3}]}, batch_norm]");
  child(*group, 0)->register_output_transform([](const Variable& x) { return relu(x); });
  expect_folds(*group, 0);
}

enum class Ties { None, OfTheWeight };

// A user's module that may hold the weight of a layer below it as its own, too.
class TiedModel final : public Module {
 public:
  explicit TiedModel(Ties ties) {
    auto chain = std::make_unique<Sequential>();
    auto& fc = chain->add<Linear>("fc", {.in_features = 4, .out_features = 4});
    chain->add<BatchNorm>("norm", {.channels = 4});
    const ParameterPtr weight = fc.weight();
    chain_ = &register_module("chain", std::move(chain));
    if (ties == Ties::OfTheWeight) register_parameter("tied", weight);
  }
  std::string_view type() const override { return "tied_model"; }
  std::optional<std::vector<Shape>> child_inputs(const Shape& input) const override {
    return std::vector<Shape>{input};
  }

 protected:
  Variable forward(const Variable& input) override { return (*chain_)(input); }

 private:
  Module* chain_;
};

TEST(FoldBatchNorm, LeavesASharedWeightAlone) {
  for (const Ties ties : {Ties::None, Ties::OfTheWeight}) {
    TiedModel model(ties);
    disturb(model);
    model.eval();
    expect_folds(model, ties == Ties::None ? 1 : 0, {4});
  }
}

TEST(FoldBatchNorm, LeavesAWeightThatAnotherLayerIsTiedToAlone) {
  const auto model = build(
      "[{type: linear, name: a, out_features: 6}, {type: batch_norm}, relu,\n"
      " {type: linear, name: b, tied_to: a}, {type: batch_norm}]",
      {6});
  expect_folds(*model, 0, {6});
}

TEST(FoldBatchNorm, AFoldedModelIsForInferenceAlone) {
  const auto model = build(
      "[{type: conv2d, name: conv, out_channels: 4, kernel: 3, bias: false}, "
      "{type: batch_norm, name: norm}]");
  const StateDict state = model->state_dict();
  ASSERT_EQ(fold_batch_norm(*model, kImage), 1);
  EXPECT_EQ(fold_batch_norm(*model, kImage), 0);  // nothing is folded twice
  EXPECT_EQ(model->parameter("conv.bias")->shape(), Shape{4});
  const std::string words = "layer 'norm' (batch_norm) is folded into the weights before it: ";
  expect_throws<StateError>([&] { model->state_dict(); }, words + "the model is for inference");
  expect_throws<Error>([&] { model->load_state_dict(state); }, "");
  model->train();
  expect_throws<StateError>([&] { (*model)(batch_of(kImage, 2)); },
                            words + "the model is for inference, and cannot be trained");
}

TEST(FoldBatchNorm, RefusesExamplesThatTheModelDoesNotTake) {
  const auto model = build("[{type: conv2d, out_channels: 4, kernel: 3}, batch_norm]");
  expect_throws<ShapeError>(
      [&] {
        fold_batch_norm(*model, {4, 8, 8});
      },
      "needs examples of shape [3, height, width]");
}

}  // namespace
}  // namespace lacuna::fold_batch_norm_test
