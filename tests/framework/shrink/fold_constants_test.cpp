// Units that always give the same value: where it goes when they are removed.
#include "lacuna/framework/shrink/fold_constants.hpp"

#include "framework/shrink/small_models.h"
#include "lacuna/framework/shrink/unit_scores.hpp"

namespace lacuna::fold_constants_test {
namespace {

// A model whose layer `a` has no weights for its second unit, which gives what its bias makes.
struct Constant {
  explicit Constant(const std::string& yaml, const Shape& example)
      : layers(model_layers(parse_yaml(yaml, "model"))),
        model(onnx_tests::make_model(yaml, example)) {
    const ParameterPtr weight = model->parameter("a.weight");
    const int64_t columns = weight->numel() / weight->shape()[0];
    BitMask mask = BitMask::ones(weight->numel());
    for (int64_t i = columns; i < 2 * columns; ++i) mask.reset(i);
    weight->set_pattern(Pattern::make(csr_layout(), weight->shape(), mask));
    build_model(layers, example);  // fills in what layers leave out
    batch = onnx_tests::make_batch(6, example, 0);
  }
  void mask_a_bias_of_b() {
    const ParameterPtr bias = model->parameter("b.bias");
    BitMask mask = BitMask::ones(bias->numel());
    mask.reset(1);
    bias->set_pattern(Pattern::make(masked_layout(), bias->shape(), mask));
  }
  // What it gives before, and the smaller one afterwards.
  void expect_same_outputs(const Shape& example) {
    const Tensor before = onnx_tests::outputs_of(*model, batch);
    const ModelUnits units(*model, example);
    const KeptUnits kept = living_units(units);
    EXPECT_EQ(std::count(kept.begin(), kept.end(), 0), 1);
    without = fold_constants(*model, example, units, kept, [&](Module& m) { run_model(m, batch); });
    const Config section = Config::map({{"layers", smaller_layers(layers, *model, units, kept)}});
    auto smaller = build_model(model_layers(section), example);
    smaller->load_state_dict(cut_model_state(*model, units, kept));
    smaller->eval();
    if (!without.empty()) return;
    shrink_tests::expect_equal(onnx_tests::outputs_of(*smaller, batch), before);
  }
  ModelLayers layers;
  std::unique_ptr<Sequential> model;
  Batch batch;
  std::vector<std::string> without;
};

TEST(FoldConstants, MovesThemIntoTheBiasThatFollows) {
  Constant constant(
      "[{type: linear, name: a, out_features: 4}, sigmoid,\n"
      " {type: linear, name: b, out_features: 3}]",
      {5});
  constant.expect_same_outputs({5});
  EXPECT_TRUE(constant.without.empty());
}

TEST(FoldConstants, MovesThemIntoTheMeanOfABatchNormalization) {
  Constant constant(
      "[{type: conv2d, name: a, out_channels: 4, kernel: 3}, gelu,\n"
      " {type: conv2d, name: b, out_channels: 5, kernel: 3, bias: false},\n"
      " {type: batch_norm}, relu, global_average_pool,\n"
      " {type: linear, name: c, out_features: 3}]",
      {2, 8, 8});
  constant.expect_same_outputs({2, 8, 8});
  EXPECT_TRUE(constant.without.empty());
}

TEST(FoldConstants, FindTheNormalizationBehindDropoutAndSums) {
  for (const char* layers :
       {"[{type: linear, name: a, out_features: 4}, sigmoid,\n"
        " {type: linear, name: b, out_features: 3, bias: false}, dropout, {type: batch_norm}]",
        "[{type: residual, layers: [{type: linear, name: a, out_features: 4}, sigmoid,\n"
        "  {type: linear, name: b, out_features: 5, bias: false}]}, {type: batch_norm}]"}) {
    Constant constant(layers, {5});
    constant.expect_same_outputs({5});
    EXPECT_TRUE(constant.without.empty()) << layers;
  }
}

TEST(FoldConstants, ASparseBiasLeavesThemToTheNormalization) {
  Constant constant(
      "[{type: linear, name: a, out_features: 4}, sigmoid,\n"
      " {type: linear, name: b, out_features: 3}, {type: batch_norm}]",
      {5});
  constant.mask_a_bias_of_b();
  constant.expect_same_outputs({5});
  EXPECT_TRUE(constant.without.empty());
}

TEST(FoldConstants, SayWhereThereIsNoPlaceForThem) {
  for (const char* after :
       {"{type: linear, name: b, out_features: 3, bias: false}",
        // The normalization is given something else than the sums of b.
        "{type: linear, name: b, out_features: 3, bias: false}, relu, {type: batch_norm}",
        "{type: linear, name: b, out_features: 3, bias: false}, {type: residual, layers: [\n"
        "  {type: batch_norm}, relu, {type: linear, name: c, out_features: 3}]}",
        // Another layer's inputs have other means.
        "{type: parallel, layers: [{type: linear, name: b, out_features: 3},\n"
        "  {type: sequential, layers: [relu, {type: linear, name: c, tied_to: b}]}]}"}) {
    Constant constant(
        "[{type: linear, name: a, out_features: 4}, sigmoid,\n" + std::string(after) + "]", {5});
    constant.expect_same_outputs({5});
    EXPECT_EQ(constant.without, std::vector<std::string>{"b.weight"}) << after;
  }
}

TEST(FoldConstants, ASparseBiasHasNoPlaceForThem) {
  Constant constant(
      "[{type: linear, name: a, out_features: 4}, sigmoid,\n"
      " {type: linear, name: b, out_features: 3}]",
      {5});
  constant.mask_a_bias_of_b();
  constant.expect_same_outputs({5});
  EXPECT_EQ(constant.without, std::vector<std::string>{"b.weight"});
}

}  // namespace
}  // namespace lacuna::fold_constants_test
