#include "lacuna/framework/autograd/tokens/attention.h"

#include <gtest/gtest.h>

#include "framework/autograd/derivatives.h"
#include "lacuna/framework/autograd/engine.h"
#include "lacuna/framework/autograd/ops/concatenate.h"
#include "lacuna/framework/core/buffer.h"
#include "lacuna/framework/core/error.h"
#include "lacuna/framework/core/parallel.h"
#include "throws.h"

namespace lacuna::attention_test {
namespace {

using test::Complex;
using test::ComplexArray;

// For all heads of [batch, T, (heads + 2 kv) d] from the definition.
ComplexArray definition(const ComplexArray& qkv, const Shape& shape, const AttentionOptions& o) {
  const int64_t kv = o.kv_heads == 0 ? o.heads : o.kv_heads, width = shape[2], length = shape[1];
  const int64_t d = width / (o.heads + 2 * kv);
  const double scale = o.scale.value_or(1.0 / std::sqrt(static_cast<double>(d)));
  const auto at = [&](int64_t b, int64_t t, int64_t column) {
    return qkv[static_cast<size_t>((b * length + t) * width + column)];
  };
  ComplexArray y(static_cast<size_t>(shape[0] * length * o.heads * d));
  for (int64_t b = 0; b < shape[0]; ++b) {
    for (int64_t h = 0; h < o.heads; ++h) {
      const int64_t k = (o.heads + h / (o.heads / kv)) * d, v = k + kv * d;
      for (int64_t t = 0; t < length; ++t) {
        ComplexArray powers(static_cast<size_t>(length), 0.0);
        Complex total = 0.0;
        for (int64_t s = 0; s < (o.causal ? t + 1 : length); ++s) {
          if (o.key_mask.defined() &&
              o.key_mask.values()[static_cast<size_t>(b * length + s)] == 0) {
            continue;
          }
          Complex logit = 0.0;
          for (int64_t i = 0; i < d; ++i) logit += at(b, t, h * d + i) * at(b, s, k + i);
          powers[static_cast<size_t>(s)] = std::exp(scale * logit);
          total += powers[static_cast<size_t>(s)];
        }
        for (int64_t i = 0; total != 0.0 && i < d; ++i) {
          Complex sum = 0.0;
          for (int64_t s = 0; s < length; ++s) {
            sum += powers[static_cast<size_t>(s)] / total * at(b, s, v + i);
          }
          y[static_cast<size_t>(((b * length + t) * o.heads + h) * d + i)] = sum;
        }
      }
    }
  }
  return y;
}

void check(const Shape& shape, const AttentionOptions& options) {
  for (const Order order : {Order::RowMajor, Order::BatchSlabs}) {
    test::check_derivatives({
        .shapes = {shape},
        .op = [&](const auto& in) { return attention(in[0], options); },
        .definition = [&](const auto& in) { return definition(in[0], shape, options); },
        .tolerance = 3e-6,
        .order = order,
    });
  }
}

TEST(AttentionOp, DerivativesAgreeWithTheDefinition) {
  check({2, 1, 6}, {});
  check({2, 5, 3 * 2 * 3}, {.heads = 2});
  check({2, 7, 3 * 2 * 2}, {.heads = 2, .causal = true});
  check({1, 6, 8 * 2}, {.heads = 4, .kv_heads = 2, .causal = true, .scale = 0.3});
  check({2, 4, 6}, {.heads = 1, .key_mask = IndexTensor({2, 4}, {1, 0, 1, 0, 0, 0, 0, 0})});
  check({1, 66, 3}, {.causal = true});
}

// Gradients of q, k and v, which a concatenation puts side by side for attention.
struct OfParts {
  Tensor y;
  std::vector<Tensor> gradients;
};

OfParts of_parts(Order order, bool joins_before) {
  const AttentionOptions options{.heads = 4, .kv_heads = 2, .causal = true};
  std::vector<Variable> parts;
  for (const int64_t features : {16, 8, 8}) {
    const Tensor x = test::normal_tensor("part " + std::to_string(parts.size()), {3, 7, features});
    parts.push_back(Variable::leaf(x.to(order)));
  }
  const Variable qkv = concatenate(parts, -1);
  if (joins_before) qkv.value();
  const Variable y = attention(rotary(qkv, {.heads = 4, .kv_heads = 2}), options);
  backward(y, test::normal_tensor("dy", {3, 7, 16}));
  OfParts found{.y = y.value().to(Order::RowMajor), .gradients = {}};
  for (const Variable& part : parts) found.gradients.push_back(part.gradient());
  return found;
}

TEST(AttentionOp, TakesQueriesKeysAndValuesThatAreNotSideBySide) {
  for (const Order order : {Order::RowMajor, Order::BatchSlabs}) {
    std::vector<std::string> nodes;
    const OfParts expected = of_parts(order, true);
    const BackwardTrace trace([&](const NodeRun& run) { nodes.push_back(run.name); });
    const OfParts found = of_parts(order, false);
    EXPECT_EQ(nodes, (std::vector<std::string>{"attention", "rotary", "rotary"}));
    EXPECT_EQ(found.y.to_vector(), expected.y.to_vector());
    for (size_t i = 0; i < 3; ++i) {
      EXPECT_EQ(found.gradients[i].order(), order);
      EXPECT_EQ(found.gradients[i].to_vector(), expected.gradients[i].to_vector()) << i;
    }
  }
}

TEST(AttentionOp, PutsPartsSideBySideThatAreNoQueriesKeysAndValues) {
  const Tensor first = test::normal_tensor("first", {2, 5, 3}),
               second = test::normal_tensor("second", {2, 5, 9});
  const std::vector<Variable> two{Variable::leaf(first), Variable::leaf(second)};
  const Variable y = attention(concatenate(two, -1), {.heads = 2});
  EXPECT_EQ(y.value().to_vector(),
            attention(concatenate(two, -1).value(), {.heads = 2}).value().to_vector());
  backward(y, Tensor::full({2, 5, 4}, 1.0f));
  EXPECT_EQ(two[1].gradient().shape(), second.shape());
  // Of different orders.
  const std::vector<Variable> three{first, first.to(Order::BatchSlabs), first};
  EXPECT_EQ(attention(concatenate(three, -1), {}).value().to_vector(),
            attention(concatenate(three, -1).value(), {}).value().to_vector());
}

TEST(AttentionOp, BackwardDropsWhatForwardDropped) {
  // With equal logits y = Σ_s factor(t, s) v_s / T, so dv_s is Σ_t factor(t, s) dy_t / T: with dy =
  // 1 at one t, it shows this t's factors, which y shows too where v is 1 at one s.
  const int64_t length = 9;
  const AttentionOptions options{.dropout = 0.5, .rng = CounterRng(1, "drop", 3)};
  for (int64_t t = 0; t < length; ++t) {
    const Variable x = Variable::leaf(Tensor::zeros({1, length, 3}));
    Tensor dy = Tensor::zeros({1, length, 1});
    dy.mutable_data()[t] = 1.0f;
    backward(attention(x, options), dy);
    for (int64_t s = 0; s < length; ++s) {
      Tensor ones = Tensor::zeros({1, length, 3});
      ones.mutable_data()[3 * s + 2] = 1.0f;
      const float of_forward = attention(ones, options).value().data()[t];
      EXPECT_FLOAT_EQ(x.gradient().data()[3 * s + 2], of_forward) << t << " " << s;
    }
  }
}

// What is alive while attention and its backward pass run, over what is alive before.
int64_t peak_bytes(int64_t length) {
  const Variable x = Variable::leaf(test::normal_tensor("qkv", {1, length, 3 * 16}));
  const int64_t before = memory_stats().current;
  reset_memory_peak();
  const Variable y = attention(x, {.heads = 2, .causal = true});
  backward(y, Tensor::full(y.shape(), 1.0f));
  return memory_stats().peak - before;
}

TEST(AttentionOp, MemoryGrowsWithTheLengthAndNotItsSquare) {
  const int before = num_threads();
  set_num_threads(1);  // what two threads hold at the same time is chance
  const int64_t one = peak_bytes(1024), two = peak_bytes(2048), four = peak_bytes(4096);
  set_num_threads(before);
  EXPECT_LE(two, 2.1 * static_cast<double>(one));
  EXPECT_LE(four, 2.1 * static_cast<double>(two));
  EXPECT_LT(four, int64_t{4096} * 4096);  // a quarter of one head's weights
}

TEST(AttentionOp, RefusesWhatDoesNotFit) {
  expect_throws<ShapeError>(
      [] {
        attention(Tensor::zeros({2, 6}), {});
      },
      "attention: needs qkv [batch, T, (heads + 2 kv_heads) d], found [2, 6]");
  expect_throws<ShapeError>(
      [] {
        attention(Tensor::zeros({2, 3, 9}), {.heads = 2, .kv_heads = 1});
      },
      "attention: 2 heads of queries and 1 of keys and values need features that are a multiple of "
      "4, found shape [2, 3, 9]");
  expect_throws<ConfigError>(
      [] {
        attention(Tensor::zeros({2, 3, 9}), {.heads = 3, .kv_heads = 2});
      },
      "attention: heads must be at least 1 and a multiple of kv_heads, found 3 and 2");
  expect_throws<ShapeError>(
      [] {
        attention(Tensor::zeros({2, 3, 6}), {.key_mask = IndexTensor({2, 1}, {1, 1})});
      },
      "attention: qkv [2, 3, 6] needs a key mask [2, 3], found [2, 1]");
  expect_throws<ConfigError>(
      [] {
        attention(Tensor::zeros({2, 3, 6}), {.dropout = 1.0});
      },
      "attention: dropout must be in [0, 1), found 1.000000");
}

TEST(RotaryOp, DerivativesAgreeWithTheDefinition) {
  const Shape shape{2, 5, (2 + 2) * 4};
  for (const Order order : {Order::RowMajor, Order::BatchSlabs}) {
    test::check_derivatives({
        .shapes = {shape},
        .op =
            [](const auto& in) { return rotary(in[0], {.heads = 2, .kv_heads = 1, .base = 50.0}); },
        .definition =
            [&](const auto& in) {
              ComplexArray y = in[0];
              for (size_t at = 0; at < y.size(); ++at) {
                const size_t column = at % 16, t = at / 16 % 5, i = column % 4 % 2;
                if (column >= 12) continue;  // values
                const double angle =
                    static_cast<double>(t) * std::pow(50.0, -static_cast<double>(i) / 2.0);
                const bool is_first = column % 4 < 2;
                const Complex other = in[0][is_first ? at + 2 : at - 2];
                y[at] =
                    in[0][at] * std::cos(angle) + (is_first ? -1.0 : 1.0) * other * std::sin(angle);
              }
              return y;
            },
        .tolerance = 1e-6,
        .order = order,
    });
  }
}

TEST(RotaryOp, RefusesWhatDoesNotFit) {
  expect_throws<ShapeError>(
      [] {
        rotary(Tensor::zeros({2, 3, 9}), {});
      },
      "rotary: needs an even number of features per head, found 3 of [2, 3, 9]");
  expect_throws<ConfigError>(
      [] {
        rotary(Tensor::zeros({2, 3, 6}), {.base = 0.0});
      },
      "rotary: base must be above 0, found 0");
}

}  // namespace
}  // namespace lacuna::attention_test
