#include "lacuna/framework/autograd/ops/linear_sparse_input.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "framework/kernels/test_values.h"
#include "lacuna/framework/autograd/engine.h"
#include "lacuna/framework/autograd/node.h"
#include "lacuna/framework/autograd/ops/keep.h"
#include "lacuna/framework/autograd/ops/linear.h"
#include "lacuna/framework/autograd/ops/shape.h"
#include "lacuna/framework/core/parallel.h"
#include "lacuna/framework/param/gradient_tap.h"

namespace lacuna::linear_sparse_input_test {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();

ParameterPtr parameter(const std::string& name, const Shape& shape) {
  const auto p = std::make_shared<Parameter>(shape, Initializer::constant(0.0));
  p->set_name(name);
  p->assign(test::normal_tensor(name, shape, 0.3));
  return p;
}

enum class By { Dense, Sparse };

struct Layer {
  Layer(int64_t in, int64_t out)
      : weight(parameter("weight", {out, in})), bias(parameter("bias", {out})) {}

  // Forward and backward of x's n largest of m, by the products asked for.
  void run(By by, const Tensor& value, const Tensor& dy, int n = 2, int m = 4) {
    const Variable x = Variable::leaf(value);
    Variable kept = keep_nm(x, n, m);
    if (by == By::Dense) kept.set_nm(nullptr);
    const Variable y =
        by == By::Sparse ? linear_sparse_input(kept, weight->as_weight(weight), Variable::of(bias))
                         : linear(kept, weight, Variable::of(bias));
    backward(y, dy);
    outputs = y.value().to_vector();
    inputs = x.gradient().to_vector();
  }
  std::vector<std::vector<float>> results() const {
    return {outputs, inputs, weight->gradient().to_vector(), bias->gradient().to_vector()};
  }

  ParameterPtr weight, bias;
  std::vector<float> outputs, inputs;
};

void expect_same(const Layer& found, const Layer& expected, const std::string& what) {
  const auto a = found.results(), b = expected.results();
  // Sums of some hundred products, taken in another order.
  for (size_t i = 0; i < a.size(); ++i) {
    EXPECT_LT(test::largest_error(a[i], b[i]), 2e-5) << what << ", result " << i;
  }
}

TEST(LinearNm, AgreesWithTheDenseProducts) {
  for (const int64_t batch : {1, 7, 64, 67, 131}) {
    for (const auto& [in, out] : {std::pair<int64_t, int64_t>{8, 5}, {20, 64}, {132, 70}}) {
      for (const Order order : {Order::RowMajor, Order::BatchSlabs}) {
        const Tensor x = test::normal_tensor("x", {batch, in}).to(order);
        const Tensor dy = test::normal_tensor("dy", {batch, out}).to(order);
        Layer sparse(in, out), dense(in, out);
        sparse.run(By::Sparse, x, dy);
        dense.run(By::Dense, x, dy);
        expect_same(sparse, dense, x.shape().to_string() + " to " + std::to_string(out));
      }
    }
  }
  for (const auto& [n, m] : {std::pair{1, 4}, {3, 8}, {1, 2}, {8, 16}}) {
    const Tensor x = test::normal_tensor("x", {67, 48}), dy = test::normal_tensor("dy", {67, 9});
    Layer sparse(48, 9), dense(48, 9);
    sparse.run(By::Sparse, x, dy, n, m);
    dense.run(By::Dense, x, dy, n, m);
    expect_same(sparse, dense, std::to_string(n) + ":" + std::to_string(m));
  }
}

TEST(LinearNm, TakesMoreLeadingDimensions) {
  const Tensor x = test::normal_tensor("x", {3, 5, 16}), dy = test::normal_tensor("dy", {3, 5, 9});
  Layer sparse(16, 9), dense(16, 9);
  sparse.run(By::Sparse, x, dy);
  dense.run(By::Dense, x, dy);
  expect_same(sparse, dense, "[3, 5, 16]");
}

TEST(LinearNm, GradientsOfASecondPassAddUp) {
  Layer sparse(16, 70), dense(16, 70);
  for (const char* name : {"first", "second"}) {
    const Tensor x = test::normal_tensor(name, {33, 16});
    const Tensor dy = test::normal_tensor(std::string("dy ") + name, {33, 70});
    sparse.run(By::Sparse, x, dy);
    dense.run(By::Dense, x, dy);
  }
  expect_same(sparse, dense, "two passes");
}

TEST(LinearNm, FollowsChangedWeights) {
  Layer sparse(16, 70), dense(16, 70);
  const Tensor x = test::normal_tensor("x", {33, 16}), dy = test::normal_tensor("dy", {33, 70});
  sparse.run(By::Sparse, x, dy);
  for (Layer* layer : {&sparse, &dense}) {
    layer->weight->zero_gradient();
    layer->bias->zero_gradient();
    layer->weight->mutable_values().mutable_data()[3] = 9.0f;
    layer->run(layer == &sparse ? By::Sparse : By::Dense, x, dy);
  }
  expect_same(sparse, dense, "after a change");
  // What the weight keeps between products does not show: a resumed run has none of it.
  Layer fresh(16, 70);
  fresh.weight->mutable_values().mutable_data()[3] = 9.0f;
  fresh.run(By::Sparse, x, dy);
  EXPECT_EQ(fresh.results(), sparse.results());
}

TEST(LinearNm, AllZerosGiveTheBias) {
  Layer layer(16, 70);
  const Tensor dy = test::normal_tensor("dy", {33, 70});
  layer.run(By::Sparse, Tensor::zeros({33, 16}), dy);
  const std::vector<float> bias = layer.bias->values().to_vector();
  for (size_t i = 0; i < layer.outputs.size(); ++i) EXPECT_EQ(layer.outputs[i], bias[i % 70]);
  EXPECT_EQ(layer.weight->gradient().to_vector(), std::vector<float>(16 * 70));
  Layer dense(16, 70);  // two of each four zeros are kept all the same, and get a gradient
  dense.run(By::Dense, Tensor::zeros({33, 16}), dy);
  expect_same(layer, dense, "zeros");
}

TEST(LinearNm, KeptNaNAndInfinityReachTheSameResults) {
  for (const float odd : {NAN, kInfinity, -kInfinity}) {
    Tensor x = test::normal_tensor("x", {67, 16});
    for (const int64_t i : {17, 18, 19, 400}) x.mutable_data()[i] = odd;
    const Tensor dy = test::normal_tensor("dy", {67, 70});
    Layer sparse(16, 70), dense(16, 70);
    sparse.run(By::Sparse, x, dy);
    dense.run(By::Dense, x, dy);
    const auto a = sparse.results(), b = dense.results();
    for (size_t k = 0; k < a.size(); ++k) {
      for (size_t i = 0; i < a[k].size(); ++i) {
        if (std::isfinite(b[k][i])) {
          ASSERT_NEAR(a[k][i], b[k][i], 1e-3) << odd << ", result " << k << " at " << i;
        } else if (std::isnan(b[k][i])) {
          ASSERT_TRUE(std::isnan(a[k][i])) << odd << ", result " << k << " at " << i;
        } else {
          ASSERT_EQ(a[k][i], b[k][i]) << odd << ", result " << k << " at " << i;
        }
      }
    }
  }
}

TEST(LinearNm, GradientsAreDifferencesOfTheOutput) {
  const Tensor x = test::normal_tensor("x", {5, 8}), dy = test::normal_tensor("dy", {5, 6});
  Layer layer(8, 6);
  layer.run(By::Sparse, x, dy);
  const auto loss = [&] {
    const Variable kept = keep_nm(Variable(x), 2, 4);
    const NoGrad no_grad;
    const std::vector<float> y =
        linear_sparse_input(kept, layer.weight->as_weight(nullptr), Variable::of(layer.bias))
            .value()
            .to_vector();
    double sum = 0.0;
    for (size_t i = 0; i < y.size(); ++i) sum += double{y[i]} * double{dy.data()[i]};
    return sum;
  };
  constexpr float kStep = 0.5f;  // linear in the weights: any step gives the derivative
  for (int64_t i = 0; i < 48; ++i) {
    const float at = layer.weight->values().data()[i];
    layer.weight->mutable_values().mutable_data()[i] = at + kStep;
    const double more = loss();
    layer.weight->mutable_values().mutable_data()[i] = at - kStep;
    const double less = loss();
    layer.weight->mutable_values().mutable_data()[i] = at;
    EXPECT_NEAR(layer.weight->gradient().data()[i], more - less, 1e-4) << i;
  }
}

TEST(LinearNm, BitsDoNotDependOnTheThreads) {
  const int before = num_threads();
  const Tensor x = test::normal_tensor("x", {131, 512}), dy = test::normal_tensor("dy", {131, 200});
  set_num_threads(1);
  Layer one(512, 200);
  one.run(By::Sparse, x, dy);
  set_num_threads(2);
  Layer two(512, 200);
  two.run(By::Sparse, x, dy);
  set_num_threads(before);
  EXPECT_EQ(one.results(), two.results());
}

class Tap final : public GradientTap {
 public:
  using GradientTap::GradientTap;
  void observe(const Tensor& gradient) override { seen = gradient.to_vector(); }
  void observe_product(const Tensor&, const Tensor&) override {
    FAIL() << "the activations are no tensor";
  }
  void reset() override {}

  std::vector<float> seen;
};

TEST(LinearNm, ATapSeesTheWholeGradient) {
  const Tensor x = test::normal_tensor("x", {33, 16}), dy = test::normal_tensor("dy", {33, 70});
  Layer plain(16, 70);
  plain.run(By::Sparse, x, dy);
  const std::vector<float> expected = plain.weight->gradient().to_vector();
  for (const auto route : {GradientRoute::Both, GradientRoute::TapOnly}) {
    Layer layer(16, 70);
    const auto tap = std::make_shared<Tap>(route);
    layer.weight->set_gradient_tap(tap);
    layer.run(By::Sparse, x, dy);
    EXPECT_EQ(tap->seen, expected);
    EXPECT_EQ(layer.weight->has_gradient(), route == GradientRoute::Both);
  }
}

TEST(LinearNm, RunsWhereItPaysAndOnlyBehindNmActivations) {
  const auto runs = [](int64_t batch, int64_t in, int64_t out, int n, int m,
                       const PatternPtr& pattern = nullptr) {
    const ParameterPtr weight = parameter("weight", {out, in});
    if (pattern != nullptr) weight->set_pattern(pattern);
    const Variable y =
        linear(keep_nm(Variable(test::normal_tensor("x", {batch, in})), n, m), weight, Variable());
    return y.creator()->name() == "linear_sparse_input";
  };
  EXPECT_TRUE(runs(64, 128, 128, 2, 4));
  EXPECT_TRUE(runs(64, 128, 128, 1, 4));
  EXPECT_FALSE(runs(64, 128, 128, 3, 4)) << "too dense";
  EXPECT_FALSE(runs(8, 128, 128, 2, 4)) << "few examples";
  EXPECT_FALSE(runs(64, 128, 10, 2, 4)) << "few outputs";
  const Shape shape{128, 128};
  EXPECT_FALSE(runs(64, 128, 128, 2, 4, Pattern::masked(shape, BitMask::zeros(128 * 128))));
  EXPECT_FALSE(
      runs(64, 128, 128, 2, 4, Pattern::make(csr_layout(), shape, BitMask::zeros(128 * 128))));

  const ParameterPtr weight = parameter("weight", shape);
  const Variable kept = keep_nm(Variable(test::normal_tensor("x", {64, 128})), 2, 4);
  const auto name = [&](const Variable& x) {
    return linear(x, weight, Variable()).creator()->name();
  };
  EXPECT_EQ(name(kept), "linear_sparse_input");
  EXPECT_EQ(name(reshape(kept, {64, 128})), "linear") << "another operation is between";
  EXPECT_EQ(name(Variable(kept.value())), "linear");
}

TEST(LinearNm, EvaluationGivesTheBitsOfTraining) {
  const Tensor x = test::normal_tensor("x", {64, 128});
  const ParameterPtr weight = parameter("weight", {128, 128});
  const auto outputs = [&] {
    return linear(keep_nm(Variable(x), 2, 4), weight, Variable()).value().to_vector();
  };
  const std::vector<float> training = outputs();
  const NoGrad no_grad;
  EXPECT_EQ(outputs(), training);
}

}  // namespace
}  // namespace lacuna::linear_sparse_input_test
