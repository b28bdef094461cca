#include "lacuna/layers/tied_linear.h"

#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <vector>

#include "lacuna/framework/autograd/engine.h"
#include "lacuna/framework/autograd/ops/arithmetic.h"
#include "lacuna/framework/autograd/ops/reduce.h"
#include "lacuna/framework/core/error.h"
#include "lacuna/framework/nn/module_rows.h"
#include "lacuna/framework/nn/sequential.h"
#include "lacuna/layers/activations.h"
#include "lacuna/optimizers/sgd.h"
#include "lacuna/sparsity/static.h"
#include "throws.h"

namespace lacuna::tied_linear_test {
namespace {

// Multiplies the table element by element with what it is given: a use of a parameter as a leaf.
class Table final : public Module {
 public:
  struct Options {
    Shape shape;
  };
  explicit Table(const Options& options)
      : weight(register_parameter(
            "weight", std::make_shared<Parameter>(options.shape, Initializer::normal(0.5)))) {}
  std::string_view type() const override { return "table"; }
  ParameterPtr weight;

 protected:
  Variable forward(const Variable& input) override { return multiply(input, Variable::of(weight)); }
};

// in.table [4, 3] → tanh → head, tied.
struct Tied {
  Tied() {
    auto inner = std::make_unique<Sequential>();
    table = &inner->add<Table>("table", {.shape = Shape{4, 3}});
    inner->add<Tanh>("tanh");
    model.add("in", std::move(inner));
    head = &model.add<TiedLinear>("head", {.weight = table->weight});
    model.initialize(3);
    head->bias()->assign(Tensor::from({4}, std::vector<float>{0.5f, -1.0f, 0.25f, 2.0f}));
  }
  double loss() {
    const Variable y = model(input);
    return static_cast<double>(sum(multiply(y, y)).value().to_vector()[0]);
  }
  Sequential model;
  Table* table;
  TiedLinear* head;
  Tensor input = Tensor::from(
      {4, 3}, std::vector<float>{1, -2, 0.5f, 0.25f, 3, -1, 2, 1, 0, -0.5f, 1.5f, 0.75f});
};

TEST(TiedLinear, MultipliesByTheWeightOfAnother) {
  Tied tied;
  tied.table->weight->assign(
      Tensor::from({4, 3}, std::vector<float>{1, 2, 3, 4, 5, 6, 7, 8, 9, 1, 0, 1}));
  const Variable y = (*tied.head)(Tensor::from({1, 3}, std::vector<float>{1, 0, 2}));
  EXPECT_EQ(y.value().to_vector(), (std::vector<float>{7.5f, 15, 25.25f, 5}));
}

TEST(TiedLinear, GradientsOfBothUsesAddUp) {
  Tied tied;
  const Variable y = tied.model(tied.input);
  backward(sum(multiply(y, y)));
  const std::vector<float> gradient = tied.table->weight->gradient().to_vector();
  const Tensor values = tied.table->weight->to_dense();
  constexpr float kStep = 1e-2f;
  for (size_t i = 0; i < gradient.size(); ++i) {
    const auto loss_at = [&](float change) {
      std::vector<float> changed = values.to_vector();
      changed[i] += change;
      tied.table->weight->assign(Tensor::from({4, 3}, changed));
      return tied.loss();
    };
    // Fourth order: what is left is the rounding of the loss, 1e-6 of some 30, over the step.
    const double slope =
        (8 * (loss_at(kStep) - loss_at(-kStep)) - (loss_at(2 * kStep) - loss_at(-2 * kStep))) /
        (12 * double{kStep});
    EXPECT_NEAR(gradient[i], slope, 2e-3 * (1 + std::abs(slope))) << i;
  }
}

TEST(TiedLinear, TheWeightIsTheOtherLayersAlone) {
  Tied tied;
  std::vector<std::string> names;
  for (const ParameterPtr& parameter : tied.model.parameters()) names.push_back(parameter->name());
  EXPECT_EQ(names, (std::vector<std::string>{"in.table.weight", "head.bias"}));
  EXPECT_EQ(tied.head->tied_weight(), tied.table->weight);
  EXPECT_EQ(tied.head->description(), "tied to in.table");
  const StateDict state = tied.model.state_dict();
  EXPECT_TRUE(state.contains("in.table.weight"));
  EXPECT_FALSE(state.contains("head.weight"));
  Tied other;
  other.table->weight->assign(Tensor::zeros({4, 3}));
  other.model.load_state_dict(state);
  EXPECT_EQ(other.loss(), tied.loss());
  const TiedLinear without({.weight = tied.table->weight, .bias = false});
  EXPECT_TRUE(without.parameters().empty());
}

TEST(TiedLinear, AnOptimizerStepsOnceForBoth) {
  Tied tied;
  const std::vector<float> before = tied.table->weight->to_dense().to_vector();
  Sgd optimizer(tied.model.parameters(), {.lr = 0.125});
  const Variable y = tied.model(tied.input);
  backward(sum(multiply(y, y)));
  const std::vector<float> gradient = tied.table->weight->gradient().to_vector();
  optimizer.step();
  const std::vector<float> after = tied.table->weight->to_dense().to_vector();
  for (size_t i = 0; i < before.size(); ++i) {
    EXPECT_FLOAT_EQ(after[i], before[i] - 0.125f * gradient[i]) << i;
  }
}

TEST(TiedLinear, FrozenWeightsGetNoGradient) {
  Tied tied;
  tied.table->weight->trainable = false;
  const Variable y = tied.model(tied.input);
  backward(sum(multiply(y, y)));
  EXPECT_FALSE(tied.table->weight->has_gradient());
  EXPECT_TRUE(tied.head->bias()->has_gradient());
}

TEST(TiedLinear, OnlyTheWeightsFullNameMakesItSparse) {
  Tied tied;
  for (const char* glob : {"in.*", "*.weight"}) {
    Static by_glob({.sparsity = 0.5, .param_filter = glob});
    expect_throws<ConfigError>(
        [&] { tied.model.apply(by_glob); },
        "in.table.weight (another layer is tied to it: only its full name selects it)");
  }
  Static by_default({.sparsity = 0.5});
  expect_throws<ConfigError>([&] { tied.model.apply(by_default); },
                             "chooses no parameter that may be sparse");
  Static of_layer({.sparsity = 0.5, .param_filter = "head.weight"});
  expect_throws<ConfigError>([&] { tied.model.apply(of_layer); }, "matches no parameter");
  EXPECT_TRUE(tied.table->weight->pattern()->is_dense());
  Static by_name({.sparsity = 0.5, .param_filter = "in.table.weight"});
  tied.model.apply(by_name);
  EXPECT_EQ(tied.table->weight->pattern()->nnz(), 6);
}

TEST(TiedLinear, RefusesAWeightWhoseGradientIsToBeSparse) {
  Tied tied;
  tied.table->weight->sparse_gradient = true;
  expect_throws<ConfigError>([&] { TiedLinear({.weight = tied.table->weight}); },
                             "every row of 'in.table.weight' gets a gradient, because a linear "
                             "layer is tied to it; leave out sparse_gradient there");
}

TEST(TiedLinear, CountsForWhatItMultiplies) {
  const Tied tied;
  const std::vector<ModuleRow> rows = module_rows(*tied.head, {7, 3});
  ASSERT_EQ(rows.size(), 1u);
  EXPECT_EQ(rows[0].weight, tied.table->weight);
  EXPECT_EQ(rows[0].uses_per_weight, 7);
  const auto all = [](const Parameter& parameter) { return parameter.numel(); };
  EXPECT_EQ(count_flops(rows, all).forward, 2 * 7 * 12);
}

TEST(TiedLinear, RefusesWhatItCannotUse) {
  expect_throws<ConfigError>([] { TiedLinear({}); }, "there is no weight to be tied to");
  const auto cube = std::make_shared<Parameter>(Shape{2, 3, 4}, Initializer::constant(0.0));
  cube->set_name("conv.weight");
  expect_throws<ShapeError>([&] { TiedLinear({.weight = cube}); },
                            "only a weight of shape [out_features, in_features] can be shared, "
                            "'conv.weight' has [2, 3, 4]");
  Tied tied;
  expect_throws<ShapeError>(
      [&] {
        tied.head->output_shape({4, 5});
      },
      "layer 'head' (linear): the weight 'in.table.weight' of shape [4, 3], "
      "which it is tied to, needs examples of shape [..., 3], found [4, 5]");
  EXPECT_EQ(tied.head->output_shape({7, 3}), (Shape{7, 4}));
}

}  // namespace
}  // namespace lacuna::tied_linear_test
