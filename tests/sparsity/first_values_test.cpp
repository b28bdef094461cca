// The first values of layers that count their nonzeros as their fan-in, under each way to start.
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "lacuna/framework/io/yaml.h"
#include "lacuna/framework/nn/sequential.h"
#include "lacuna/framework/train/builtins.h"
#include "lacuna/layers/linear.h"
#include "lacuna/optimizers/sgd.h"
#include "lacuna/sparsity/configure.h"

namespace lacuna::first_values_test {
namespace {

constexpr int64_t kIn = 400, kOut = 300;

std::unique_ptr<SparsityAlgorithm> algorithm(const std::string& yaml) {
  register_builtins();
  return configure(parse_yaml(yaml, "c.yaml"), 0);
}

// One linear layer, under an algorithm if there is one.
struct OneLayer {
  explicit OneLayer(FanIn fan_in, const std::string& sparsity = "",
                    WeightInit init = WeightInit::Default) {
    model.add<Linear>(
        "fc", {.in_features = kIn, .out_features = kOut, .init = init, .init_fan_in = fan_in});
    model.initialize(3);
    if (!sparsity.empty()) apply(sparsity);
  }

  void apply(const std::string& sparsity) {
    applied = algorithm(sparsity);
    model.apply(*applied);
  }
  Parameter& weight() { return *model.parameter("fc.weight"); }
  std::vector<float> values() { return weight().to_dense().to_vector(); }

  Sequential model;
  std::unique_ptr<SparsityAlgorithm> applied;
};

// What a signal of variance 1 has after the layer: the sum of an output's squared weights.
double signal(const std::vector<float>& values) {
  double sum = 0.0;
  for (const float v : values) sum += static_cast<double>(v) * v;
  return sum / kOut;
}

// Where the mask is, `values` are those of `expected`.
void expect_selected(const Parameter& parameter, const std::vector<float>& expected) {
  const std::vector<float> values = parameter.to_dense().to_vector();
  const ByteArray mask = parameter.mask();
  for (size_t i = 0; i < values.size(); ++i) {
    ASSERT_EQ(values[i], mask.values[i] != 0 ? expected[i] : 0.0f) << i;
  }
}

TEST(FirstValues, KeepTheSignalOfALayerThatStartsSparse) {
  for (const char* name : {"static", "set", "rigl", "snfs"}) {
    for (const char* layout : {"masked", "csr"}) {
      const std::string sparsity = "{algorithm: " + std::string(name) + ", layout: " + layout +
                                   ", sparsity: 0.95, param_filter: fc.weight}";
      // Uniform within ± 1/√k, k of them: 1/3.
      EXPECT_NEAR(signal(OneLayer(FanIn::nonzeros(), sparsity).values()), 1.0 / 3.0, 0.01);
      EXPECT_NEAR(signal(OneLayer(FanIn::all(), sparsity).values()), 0.05 / 3.0, 0.001);
    }
  }
}

TEST(FirstValues, AreTheSameInEveryLayout) {
  const auto values = [](const std::string& options) {
    return OneLayer(FanIn::nonzeros(), "{algorithm: static, " + options + "}").values();
  };
  EXPECT_EQ(values("sparsity: 0.8, layout: csr"), values("sparsity: 0.8, layout: masked"));
  const std::string nm = "pattern: {type: nm, n: 2, m: 4}, layout: ";
  EXPECT_EQ(values(nm + "nm"), values(nm + "masked"));
  EXPECT_NEAR(signal(values(nm + "nm")), 1.0 / 3.0, 0.01);
  const std::string block = "sparsity: 0.8, pattern: {type: block, rows: 4, cols: 4}, layout: ";
  EXPECT_EQ(values(block + "block"), values(block + "masked"));
}

TEST(FirstValues, OfAMaskOfTheLargestAreTheOnesItWasChosenBy) {
  const std::string sparsity = "{algorithm: static, sparsity: 0.9, init_method: topk, layout: csr}";
  OneLayer nonzeros(FanIn::nonzeros(), sparsity), all(FanIn::all(), sparsity);
  EXPECT_EQ(nonzeros.weight().mask().values, all.weight().mask().values);
  EXPECT_GT(signal(nonzeros.values()), 5.0 * signal(all.values()));
}

TEST(FirstValues, OfAlgorithmsThatStartDenseAreDense) {
  const std::vector<float> dense = OneLayer(FanIn::all()).values();
  for (const char* sparsity :
       {"{algorithm: snip, sparsity: 0.9, layout: csr}",
        "{algorithm: acdc, sparsity: 0.9, update: {freq: 2, start: 2}, layout: csr}",
        "{algorithm: rigl, sparsity: 0.9, update: {freq: 2, start: 2}, layout: csr}",
        "{algorithm: gmp, update: {freq: 2}, layout: masked, "
        "sparsity: {type: polynomial, init: 0.0, final: 0.9, start: 0, end: 8}}"}) {
    EXPECT_EQ(OneLayer(FanIn::nonzeros(), sparsity).values(), dense) << sparsity;
  }
}

TEST(FirstValues, OfDenseMastersAreThoseOfADenseLayer) {
  const std::vector<float> dense = OneLayer(FanIn::all()).values();
  for (const char* sparsity :
       {"{algorithm: semi_sparse, pattern: {type: nm, n: 2, m: 4}, layout: nm}",
        "{algorithm: ste, sparsity: 0.9, update: {freq: 2}, layout: csr}"}) {
    OneLayer layer(FanIn::nonzeros(), sparsity);
    EXPECT_LT(layer.weight().pattern()->density(), 0.6) << sparsity;
    expect_selected(layer.weight(), dense);
  }
}

TEST(FirstValues, AreDrawnForTheFirstPhaseAlone) {
  OneLayer layer(FanIn::nonzeros(),
                 "{phases: [{until: 2, algorithm: static, sparsity: 0.5, layout: csr}, "
                 "{algorithm: static, sparsity: 0.9, layout: csr}]}");
  const std::vector<float> first = layer.values();
  EXPECT_NEAR(signal(first), 1.0 / 3.0, 0.01);
  Sgd optimizer(layer.model.parameters(), SgdOptions{.lr = 0.0});
  optimizer.apply(*layer.applied);
  for (int step = 0; step < 3; ++step) {
    for (const ParameterPtr& parameter : layer.model.parameters()) {
      parameter->accumulate(Tensor::zeros(parameter->shape()));
    }
    optimizer.step();
    optimizer.zero_grad();
  }
  EXPECT_NEAR(layer.weight().pattern()->density(), 0.1, 0.01);
  expect_selected(layer.weight(), first);
}

TEST(FirstValues, ThatAreLoadedStayAsTheyAre) {
  OneLayer source(FanIn::all()), layer(FanIn::nonzeros());
  layer.model.load_state_dict(source.model.state_dict());
  layer.apply("{algorithm: static, sparsity: 0.9, layout: csr}");
  expect_selected(layer.weight(), source.values());
}

TEST(FirstValues, OfXavierReckonWithInputsAndOutputs) {
  OneLayer layer(FanIn::nonzeros(), "{algorithm: static, sparsity: 0.9, layout: csr}",
                 WeightInit::XavierNormal);
  // On average 40 inputs an output and 30 outputs an input: variances of 2 / (40 + 30).
  EXPECT_NEAR(signal(layer.values()), 40 * 2.0 / (40 + 30), 0.03);
}

}  // namespace
}  // namespace lacuna::first_values_test
