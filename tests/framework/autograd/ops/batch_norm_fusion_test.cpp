// A batch normalization with the addition and the ReLU behind it, which run in its pass.
#include <gmock/gmock.h>

#include <functional>
#include <string>
#include <vector>

#include "framework/autograd/ops/image_definitions.h"
#include "lacuna/framework/autograd/ops/activation.h"
#include "lacuna/framework/autograd/ops/arithmetic.h"
#include "lacuna/framework/autograd/ops/batch_norm.h"
#include "lacuna/framework/core/parallel.h"

namespace lacuna::batch_norm_fusion_test {
namespace {

using test::ComplexArray;
using testing::ElementsAre;
using Inputs = std::vector<Variable>;
using Arrays = std::vector<ComplexArray>;

constexpr double kEps = 0.1;

Variable norm(const Variable& x, const Variable& weight, const Variable& bias) {
  return batch_norm(x, weight, bias, channel_moments(x), MomentsOf::Batch, {.eps = kEps});
}

// What a network computes by one pass must not depend on whether it does.
struct FusedCase {
  std::string name;
  std::vector<std::string> inputs;  ///< x: images; w: by channel
  std::function<Variable(const Inputs&, const std::function<Variable(Variable)>& keep)> chain;
  std::function<ComplexArray(const Shape&, const Arrays&)> definition;
  std::vector<std::string> nodes;  ///< that its backward pass runs, in their order
};

ComplexArray normed(const Shape& shape, const Arrays& in, size_t first) {
  return test::batch_norm_definition(shape, kEps, in[first], in[first + 1], in[first + 2]);
}

const std::vector<FusedCase>& fused_cases() {
  static const std::vector<FusedCase> all = {
      {"norm, relu",
       {"x", "w", "w"},
       [](const Inputs& in, const auto& keep) { return relu(keep(norm(in[0], in[1], in[2]))); },
       [](const Shape& s, const Arrays& in) { return test::relu_definition(normed(s, in, 0)); },
       {"batch_norm"}},
      {"norm + x",
       {"x", "w", "w", "x"},
       [](const Inputs& in, const auto& keep) {
         return add(keep(norm(in[0], in[1], in[2])), in[3]);
       },
       [](const Shape& s, const Arrays& in) {
         return test::sum_definition(normed(s, in, 0), in[3]);
       },
       {"batch_norm"}},
      {"norm + x, relu",
       {"x", "w", "w", "x"},
       [](const Inputs& in, const auto& keep) {
         return relu(keep(add(keep(norm(in[0], in[1], in[2])), in[3])));
       },
       [](const Shape& s, const Arrays& in) {
         return test::relu_definition(test::sum_definition(normed(s, in, 0), in[3]));
       },
       {"batch_norm"}},
      {"x + norm, relu",
       {"x", "w", "w", "x"},
       [](const Inputs& in, const auto& keep) {
         return relu(keep(add(in[3], keep(norm(in[0], in[1], in[2])))));
       },
       [](const Shape& s, const Arrays& in) {
         return test::relu_definition(test::sum_definition(in[3], normed(s, in, 0)));
       },
       {"batch_norm"}},
      {"norm + norm, relu",
       {"x", "w", "w", "x", "w", "w"},
       [](const Inputs& in, const auto& keep) {
         const Variable a = keep(norm(in[0], in[1], in[2])), b = keep(norm(in[3], in[4], in[5]));
         return relu(keep(add(a, b)));
       },
       [](const Shape& s, const Arrays& in) {
         return test::relu_definition(test::sum_definition(normed(s, in, 0), normed(s, in, 3)));
       },
       {"batch_norm", "batch_norm"}},
      {"norm + its own input, relu",
       {"x", "w", "w"},
       [](const Inputs& in, const auto& keep) {
         return relu(keep(add(keep(norm(in[0], in[1], in[2])), in[0])));
       },
       [](const Shape& s, const Arrays& in) {
         return test::relu_definition(test::sum_definition(normed(s, in, 0), in[0]));
       },
       {"batch_norm"}},
      {"norm + the same norm, relu",
       {"x", "w", "w"},
       [](const Inputs& in, const auto& keep) {
         const Variable y = keep(norm(in[0], in[1], in[2]));
         return relu(keep(add(y, y)));
       },
       [](const Shape& s, const Arrays& in) {
         return test::relu_definition(test::sum_definition(normed(s, in, 0), normed(s, in, 0)));
       },
       {"batch_norm", "batch_norm"}},
      {"relu of a norm that is used again",
       {"x", "w", "w", "x"},
       [](const Inputs& in, const auto& keep) {
         const Variable y = keep(norm(in[0], in[1], in[2]));
         const Variable left = relu(y);
         return add(multiply(left, in[3]), multiply(y, y));
       },
       [](const Shape& s, const Arrays& in) {
         const ComplexArray y = normed(s, in, 0), left = test::relu_definition(y);
         ComplexArray sum(y.size());
         for (size_t i = 0; i < y.size(); ++i) sum[i] = left[i] * in[3][i] + y[i] * y[i];
         return sum;
       },
       {}},
      {"norm used by two sums, relu",
       {"x", "w", "w", "x"},
       [](const Inputs& in, const auto& keep) {
         const Variable y = keep(norm(in[0], in[1], in[2]));
         return add(relu(keep(add(y, in[3]))), relu(y));
       },
       [](const Shape& s, const Arrays& in) {
         const ComplexArray y = normed(s, in, 0);
         return test::sum_definition(test::relu_definition(test::sum_definition(y, in[3])),
                                     test::relu_definition(y));
       },
       {}},
      {"norm + x + x, relu",
       {"x", "w", "w", "x", "x"},
       [](const Inputs& in, const auto& keep) {
         return relu(keep(add(keep(add(keep(norm(in[0], in[1], in[2])), in[3])), in[4])));
       },
       [](const Shape& s, const Arrays& in) {
         return test::relu_definition(
             test::sum_definition(test::sum_definition(normed(s, in, 0), in[3]), in[4]));
       },
       {"relu", "add", "batch_norm"}},
      {"a norm of a relu of a norm, relu",
       {"x", "w", "w", "w", "w"},
       [](const Inputs& in, const auto& keep) {
         const Variable y = relu(keep(norm(in[0], in[1], in[2])));
         return relu(keep(norm(y, in[3], in[4])));
       },
       [](const Shape& s, const Arrays& in) {
         const ComplexArray y = test::relu_definition(normed(s, in, 0));
         return test::relu_definition(test::batch_norm_definition(s, kEps, y, in[3], in[4]));
       },
       {"batch_norm", "batch_norm"}},
      {"norm + a bias by channel, which is stretched, relu",
       {"x", "w", "w", "c"},
       [](const Inputs& in, const auto& keep) {
         return relu(keep(add(keep(norm(in[0], in[1], in[2])), in[3])));
       },
       [](const Shape& s, const Arrays& in) {
         ComplexArray y = normed(s, in, 0);
         const test::ChannelDefinition of(s);
         for (int64_t c = 0; c < of.channels; ++c) {
           of.for_each(c, [&](size_t i) { y[i] += in[3][static_cast<size_t>(c)]; });
         }
         return test::relu_definition(y);
       },
       {"relu", "add", "batch_norm"}},
  };
  return all;
}

Variable as_it_is(Variable x) { return x; }
// Computed on the spot, so that nothing joins it.
Variable settled(Variable x) {
  x.value();
  return x;
}

Shape shape_of(const std::string& input, const Shape& images) {
  if (input == "x") return images;
  if (input == "w") return {images[1]};
  return {images[1], 1, 1};
}

const std::vector<Shape>& image_shapes() {
  static const std::vector<Shape> all = {{3, 2, 2, 3}, {17, 2, 1, 2}, {2, 17, 1, 1}};
  return all;
}

TEST(BatchNormFusion, DerivativesAgreeWithTheDefinition) {
  for (const FusedCase& c : fused_cases()) {
    for (const Shape& images : image_shapes()) {
      for (const Order order : test::image_orders()) {
        SCOPED_TRACE(c.name + " in " + to_string(order));
        std::vector<Shape> shapes;
        for (const std::string& input : c.inputs) shapes.push_back(shape_of(input, images));
        if (c.inputs.back() == "c" && order != Order::RowMajor) continue;  // it is no image
        test::check_derivatives({
            .shapes = shapes,
            .op = [&](const Inputs& in) { return c.chain(in, as_it_is); },
            .definition = [&](const Arrays& in) { return c.definition(images, in); },
            .tolerance = 5e-6,
            .order = order,
        });
      }
    }
  }
}

struct Results {
  std::vector<std::vector<float>> values;  ///< the output, then each gradient
  std::vector<std::string> nodes;
};

Results run(const FusedCase& c, const Shape& images, Order order, bool is_fused) {
  Results results;
  Inputs inputs;
  for (size_t i = 0; i < c.inputs.size(); ++i) {
    const Shape shape = shape_of(c.inputs[i], images);
    const Tensor value = test::normal_tensor("input" + std::to_string(i), shape);
    inputs.push_back(Variable::leaf(c.inputs[i] == "x" ? value.to(order) : value));
  }
  const Variable y = c.chain(inputs, is_fused ? as_it_is : settled);
  results.values.push_back(y.value().to_vector());
  const BackwardTrace trace([&](const NodeRun& node) { results.nodes.push_back(node.name); });
  backward(y, test::normal_tensor("dy", images));  // row-major, whatever the order of y
  for (const Variable& input : inputs) results.values.push_back(input.gradient().to_vector());
  return results;
}

TEST(BatchNormFusion, GivesWhatTheOperationsGiveOneByOne) {
  for (const FusedCase& c : fused_cases()) {
    for (const Shape& images : image_shapes()) {
      for (const Order order : test::image_orders()) {
        SCOPED_TRACE(c.name + " in " + to_string(order));
        const Results fused = run(c, images, order, true), plain = run(c, images, order, false);
        ASSERT_EQ(fused.values.size(), plain.values.size());
        for (size_t i = 0; i < fused.values.size(); ++i) {
          // The same terms, some with one rounding fewer, sums of up to 200 in another order.
          EXPECT_LE(test::largest_error(fused.values[i], plain.values[i]), 2e-6) << i;
        }
      }
    }
  }
}

TEST(BatchNormFusion, JoinsWhatStandsBehindTheNorm) {
  for (const FusedCase& c : fused_cases()) {
    if (c.nodes.empty()) continue;
    const Results fused = run(c, {3, 2, 2, 3}, Order::ImageSlabs, true);
    EXPECT_EQ(fused.nodes, c.nodes) << c.name;
  }
  const FusedCase& first = fused_cases().front();
  EXPECT_THAT(run(first, {3, 2, 2, 3}, Order::RowMajor, false).nodes,
              ElementsAre("relu", "batch_norm"));
}

TEST(BatchNormFusion, ComputesNoNormThatAReluHasTaken) {
  const Variable x = Variable::leaf(test::normal_tensor("x", {4, 2}));
  const Variable y = norm(x, {}, {});
  const Variable sum = add(y, x);
  EXPECT_NE(y.deferred_value(), nullptr);
  EXPECT_NE(sum.deferred_value(), nullptr);
  const Variable z = relu(sum);
  EXPECT_EQ(z.deferred_value(), nullptr);
  EXPECT_NE(y.deferred_value(), nullptr);
  EXPECT_NE(sum.deferred_value(), nullptr);
}

TEST(BatchNormFusion, KeepsTheOrderOfTheImages) {
  const Tensor x = test::normal_tensor("x", {17, 18, 2, 2});
  const Variable w = test::normal_tensor("w", {18}), b = test::normal_tensor("b", {18});
  for (const Order order : {Order::RowMajor, Order::ImageSlabs, Order::ChannelBlocks}) {
    const Variable images = x.to(order);
    EXPECT_EQ(norm(images, w, b).value().order(), order);
    EXPECT_EQ(relu(norm(images, w, b)).value().order(), order);
    EXPECT_EQ(relu(add(norm(images, w, b), x)).value().order(), order);
  }
}

// Borders and missing channels stay zero though the norm shifts: what comes next counts on it. (Who
// sums over examples clears those that the last slab lacks.)
TEST(BatchNormFusion, KeepsPaddingZero) {
  const Shape shape{16, 18, 2, 2};
  const Variable x = Variable::leaf(test::normal_tensor("x", shape));
  const Variable w = test::normal_tensor("w", {18}), b = Tensor::full({18}, 3.0f);
  for (const Order order : {Order::ImageSlabs, Order::ChannelBlocks}) {
    const Variable images = Variable::leaf(x.value().to(order));
    const auto expect_clean = [&](const Tensor& y) {
      ASSERT_EQ(y.order(), order);
      const Tensor clean = y.to(Order::RowMajor).to(order);
      const std::vector<float> found(y.storage().begin(), y.storage().end());
      EXPECT_EQ(found, std::vector<float>(clean.storage().begin(), clean.storage().end()));
    };
    expect_clean(norm(images, w, b).value());
    const Variable y = relu(add(norm(images, w, b), x));
    expect_clean(y.value());
    backward(y, test::normal_tensor("dy", shape));
    expect_clean(images.gradient());
  }
}

TEST(BatchNormFusion, GivesTheSameBitsForAnyNumberOfThreads) {
  const FusedCase& c = fused_cases()[4];
  const int before = num_threads();
  for (const Order order : test::image_orders()) {
    set_num_threads(1);
    const Results one = run(c, {35, 33, 9, 9}, order, true);
    set_num_threads(2);
    EXPECT_EQ(run(c, {35, 33, 9, 9}, order, true).values, one.values) << to_string(order);
  }
  set_num_threads(before);
}

// What is left of a norm that the weights before it have taken in.
TEST(FoldedBatchNorm, PassesOnWhatItIsGiven) {
  const Variable x = Variable::leaf(test::normal_tensor("x", {3, 18, 2, 3}));
  for (const Order order : test::image_orders()) {
    const Variable images = multiply(Variable(x.value().to(order)), x);
    EXPECT_TRUE(folded_batch_norm(images).value().shares_storage_with(images.value()));
    EXPECT_TRUE(folded_batch_norm(images).requires_grad());
  }
  const NoGrad no_grad;
  EXPECT_TRUE(folded_batch_norm(x).value().shares_storage_with(x.value()));
  EXPECT_FALSE(folded_batch_norm(x).requires_grad());
}

TEST(FoldedBatchNorm, AdditionAndReluJoinIt) {
  const Tensor values = test::normal_tensor("x", {17, 18, 2, 3});
  const Tensor others = test::normal_tensor("other", values.shape());
  const Tensor dy = test::normal_tensor("dy", values.shape());
  for (const Order order : test::image_orders()) {
    const auto run_with = [&](Variable (*norm_of)(const Variable&)) {
      Results results;
      const Variable x = Variable::leaf(values.to(order)), other = Variable::leaf(others.to(order));
      const Variable y = relu(add(norm_of(x), other));
      results.values.push_back(y.value().to_vector());
      const BackwardTrace trace([&](const NodeRun& node) { results.nodes.push_back(node.name); });
      backward(y, dy);
      results.values.push_back(x.gradient().to_vector());
      results.values.push_back(other.gradient().to_vector());
      return results;
    };
    const Results folded = run_with(folded_batch_norm);
    const Results plain = run_with([](const Variable& x) { return x; });
    EXPECT_EQ(folded.values, plain.values) << to_string(order);
    EXPECT_THAT(folded.nodes, ElementsAre("batch_norm"));
  }
  const Variable leaf = Variable::leaf(values);
  backward(folded_batch_norm(leaf), dy);
  EXPECT_EQ(leaf.gradient().to_vector(), dy.to_vector());
}

TEST(BatchNormFusion, RecordsNothingOfANormMadeWhileRecordingIsOff) {
  const Variable x = Variable::leaf(test::normal_tensor("x", {4, 2}));
  const auto unrecorded = [&] {
    const NoGrad no_grad;
    return norm(x, {}, {});
  };
  EXPECT_FALSE(relu(unrecorded()).requires_grad());
  EXPECT_FALSE(add(unrecorded(), Tensor::zeros({4, 2})).requires_grad());
  const NoGrad no_grad;
  EXPECT_FALSE(relu(norm(x, {}, {})).requires_grad());
}

}  // namespace
}  // namespace lacuna::batch_norm_fusion_test
