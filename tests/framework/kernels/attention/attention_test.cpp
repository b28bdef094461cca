#include "lacuna/framework/kernels/attention/attention.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <string>

#include "framework/kernels/test_values.h"
#include "lacuna/framework/core/parallel.h"
#include "lacuna/framework/kernels/attention/attention_reference.hpp"

namespace lacuna {
namespace {

using test::Complex;
using test::convert;
using test::normal_values;

struct Case {
  int64_t batch = 2, length = 7, heads = 2, kv_heads = 2, d = 8;
  bool causal = false;
  std::vector<int64_t> mask = {};
  double dropout = 0.0;

  AttentionProblem problem() const {
    return {.batch = batch,
            .length = length,
            .heads = heads,
            .kv_heads = kv_heads,
            .head_features = d,
            .causal = causal,
            .scale = 0.7f / std::sqrt(static_cast<float>(d)),
            .key_mask = mask.empty() ? nullptr : mask.data(),
            .dropout = dropout,
            .rng = CounterRng(3, "attention", 5)};
  }
  Shape qkv_shape() const { return {batch, length, problem().features()}; }
  std::string text() const {
    return "batch " + std::to_string(batch) + ", length " + std::to_string(length) + ", heads " +
           std::to_string(heads) + "/" + std::to_string(kv_heads) + ", d " + std::to_string(d) +
           (causal ? ", causal" : "") + (mask.empty() ? "" : ", masked") +
           (dropout > 0.0 ? ", dropout" : "");
  }
};

// The last `padding` keys of each example are masked; of the second all.
std::vector<int64_t> padding_mask(int64_t batch, int64_t length, int64_t padding) {
  std::vector<int64_t> mask(static_cast<size_t>(batch * length), 1);
  for (int64_t b = 0; b < batch; ++b) {
    for (int64_t t = b == 1 ? 0 : length - padding; t < length; ++t) {
      mask[static_cast<size_t>(b * length + t)] = 0;
    }
  }
  return mask;
}

template <class T>
struct Result {
  std::vector<T> y, lse, dqkv;
};

// From the definition, head by head, in type T. Without a dy, y and lse alone.
template <class T>
Result<T> definition(const Case& c, const std::vector<T>& qkv, const std::vector<T>& dy) {
  const AttentionProblem p = c.problem();
  const int64_t width = p.features(), out = c.heads * c.d;
  Result<T> result{std::vector<T>(static_cast<size_t>(c.batch * c.length * out)),
                   std::vector<T>(static_cast<size_t>(c.batch * c.heads * c.length)),
                   std::vector<T>(qkv.size())};
  const auto part = [&](const std::vector<T>& from, int64_t row_width, int64_t b, int64_t column) {
    std::vector<T> rows;
    for (int64_t t = 0; t < c.length; ++t) {
      const auto* row = from.data() + (b * c.length + t) * row_width + column;
      rows.insert(rows.end(), row, row + c.d);
    }
    return rows;
  };
  const auto add = [&](const std::vector<T>& rows, std::vector<T>& to, int64_t row_width, int64_t b,
                       int64_t column) {
    for (int64_t t = 0; t < c.length; ++t) {
      for (int64_t i = 0; i < c.d; ++i) {
        to[static_cast<size_t>((b * c.length + t) * row_width + column + i)] +=
            rows[static_cast<size_t>(t * c.d + i)];
      }
    }
  };
  for (int64_t b = 0; b < c.batch; ++b) {
    for (int64_t h = 0; h < c.heads; ++h) {
      const int64_t kv = h * c.kv_heads / c.heads;
      const int64_t k_column = (c.heads + kv) * c.d, v_column = k_column + c.kv_heads * c.d;
      const AttentionHead head{.length = c.length,
                               .features = c.d,
                               .causal = c.causal,
                               .scale = p.scale,
                               .key_mask = c.mask.empty() ? nullptr : c.mask.data() + b * c.length,
                               .dropout = c.dropout,
                               .rng = &p.rng,
                               .first_row = static_cast<uint64_t>((b * c.heads + h) * c.length)};
      const auto q = part(qkv, width, b, h * c.d), k = part(qkv, width, b, k_column),
                 v = part(qkv, width, b, v_column);
      std::vector<T> y(q.size()), dq(q.size()), dk(q.size()), dv(q.size());
      T* lse = result.lse.data() + (b * c.heads + h) * c.length;
      reference::attention_head(head, q.data(), k.data(), v.data(), y.data(), lse);
      add(y, result.y, out, b, h * c.d);
      if (dy.empty()) continue;
      const auto of_dy = part(dy, out, b, h * c.d);
      reference::attention_head_gradient(head, q.data(), k.data(), v.data(), y.data(), lse,
                                         of_dy.data(), dq.data(), dk.data(), dv.data());
      add(dq, result.dqkv, width, b, h * c.d);
      add(dk, result.dqkv, width, b, k_column);
      add(dv, result.dqkv, width, b, v_column);
    }
  }
  return result;
}

// NaN wherever a kernel must write.
Tensor unwritten(const Shape& shape, Order order) {
  Tensor x = Tensor::empty(shape, order);
  std::ranges::fill(x.mutable_storage(), NAN);
  x.clear_padding();
  return x;
}

bool has_clear_padding(const Tensor& x) {
  Tensor cleared = x.clone();
  cleared.clear_padding();
  return std::ranges::equal(x.storage(), cleared.storage());
}

Result<float> run(const Case& c, Order order) {
  const AttentionProblem p = c.problem();
  const Shape shape = c.qkv_shape(), out = shape.with_features(c.heads * c.d);
  const Tensor qkv = test::normal_tensor("qkv", shape).to(order);
  const Tensor dy = test::normal_tensor("dy", out).to(order);
  Tensor y = unwritten(out, order), dqkv = unwritten(shape, order);
  std::vector<float> lse(static_cast<size_t>(c.batch * c.heads * c.length), NAN);
  const auto in = QkvTensors<const Tensor>::joined(p, qkv);
  attention(p, in, y, lse.data());
  attention_gradient(p, in, y, lse.data(), dy, QkvTensors<Tensor>::joined(p, dqkv));
  EXPECT_TRUE(has_clear_padding(y) && has_clear_padding(dqkv)) << c.text();
  return {y.to_vector(), lse, dqkv.to_vector()};
}

// Of the largest element of what is expected, or of 1.
template <class A>
double relative_error(const std::vector<A>& found, const std::vector<double>& expected) {
  double largest = 1.0, error = 0.0;
  for (const double value : expected) {
    if (std::isfinite(value)) largest = std::max(largest, std::abs(value));
  }
  for (size_t i = 0; i < found.size(); ++i) {
    if (std::isinf(expected[i]) && found[i] == static_cast<A>(expected[i])) continue;
    const double difference = std::abs(found[i] - expected[i]);
    if (!(difference >= 0.0)) return INFINITY;
    error = std::max(error, difference / largest);
  }
  return error;
}

double dot(const std::vector<double>& a, const std::vector<double>& b) {
  double sum = 0.0;
  for (size_t i = 0; i < a.size(); ++i) sum += a[i] * b[i];
  return sum;
}

void expect_agreement(const Case& c) {
  const auto qkv = convert<double>(normal_values("qkv", c.qkv_shape().numel()));
  const auto dy = convert<double>(normal_values("dy", c.batch * c.length * c.heads * c.d));
  const auto expected = definition<double>(c, qkv, dy);
  for (const Order order : {Order::RowMajor, Order::BatchSlabs}) {
    const auto found = run(c, order);
    EXPECT_LE(relative_error(found.y, expected.y), 3e-6) << c.text();
    EXPECT_LE(relative_error(found.lse, expected.lse), 3e-6) << c.text();
    EXPECT_LE(relative_error(found.dqkv, expected.dqkv), 1e-5) << c.text();
  }
}

TEST(Attention, AgreesWithTheDefinitionAtManyLengths) {
  // Around whole slabs, blocks that take what is left, and edges.
  for (const int64_t length : {1, 7, 16, 17, 32, 48, 63, 64, 65, 68, 69, 80, 81, 127, 128, 129}) {
    for (const bool causal : {false, true}) {
      const Case one_head{
          .batch = 3, .length = length, .heads = 1, .kv_heads = 1, .causal = causal};
      expect_agreement(one_head);
      Case masked = one_head;
      masked.mask = padding_mask(3, length, length / 3);
      expect_agreement(masked);
    }
  }
}

TEST(Attention, AgreesWithTheDefinitionWhereWeightsAreDropped) {
  for (const int64_t length : {1, 7, 32, 63, 64, 65, 81, 129}) {
    for (const bool causal : {false, true}) {
      expect_agreement({.length = length, .causal = causal, .dropout = 0.2});
      expect_agreement({.length = length,
                        .causal = causal,
                        .mask = padding_mask(2, length, length / 3),
                        .dropout = 0.3});
    }
  }
}

TEST(Attention, AgreesWithTheDefinitionAtManyHeadSizes) {
  for (const int64_t d : {1, 3, 15, 16, 17, 32, 33, 48, 64, 80, 128}) {
    expect_agreement({.batch = 1, .length = 70, .heads = 1, .kv_heads = 1, .d = d, .causal = true});
    expect_agreement({.batch = 2, .length = 64, .heads = 1, .kv_heads = 1, .d = d, .causal = true});
    expect_agreement({.batch = 2, .length = 65, .heads = 1, .kv_heads = 1, .d = d});
  }
}

TEST(Attention, GroupsOfQueriesShareKeys) {
  for (const int64_t kv_heads : {1, 2, 3, 6}) {
    expect_agreement({.length = 20, .heads = 6, .kv_heads = kv_heads, .d = 5, .causal = true});
    expect_agreement({.length = 67, .heads = 6, .kv_heads = kv_heads, .d = 5, .dropout = 0.5});
    expect_agreement({.length = 66, .heads = 6, .kv_heads = kv_heads, .d = 5});
    expect_agreement({.length = 64, .heads = 6, .kv_heads = kv_heads, .d = 5, .causal = true});
  }
}

TEST(Attention, TakesALongSequence) {
  expect_agreement({.batch = 1, .length = 257, .heads = 1, .kv_heads = 1});
  expect_agreement({.batch = 1, .length = 192, .heads = 1, .kv_heads = 1, .causal = true});
  Case c{.batch = 1, .length = 1000, .heads = 2, .kv_heads = 1, .d = 16};
  expect_agreement(c);
  c.causal = true;
  c.mask = padding_mask(1, 1000, 300);
  expect_agreement(c);
}

TEST(Attention, ASingleKeyGivesItsValue) {
  const Case c{.batch = 1, .length = 5, .heads = 1, .kv_heads = 1, .d = 4, .mask = {0, 0, 1, 0, 0}};
  const auto qkv = normal_values("qkv", 5 * 12);
  const auto found = run(c, Order::RowMajor);
  for (size_t t = 0; t < 5; ++t) {
    for (size_t i = 0; i < 4; ++i) {
      EXPECT_NEAR(found.y[4 * t + i], qkv[2 * 12 + 8 + i], 1e-6);
    }
  }
}

TEST(Attention, AQueryThatSeesNoKeyGivesZerosAndNoGradient) {
  Case c{.batch = 1, .length = 66, .heads = 1, .kv_heads = 1, .d = 4, .causal = true};
  c.mask.assign(66, 1);
  for (size_t t = 0; t < 65; ++t) c.mask[t] = 0;
  const auto found = run(c, Order::RowMajor);
  for (size_t i = 0; i < 65 * 4; ++i) EXPECT_EQ(found.y[i], 0.0f);
  EXPECT_EQ(found.lse[0], INFINITY);
  for (size_t i = 0; i < 65 * 12; ++i) EXPECT_EQ(found.dqkv[i], 0.0f);
  EXPECT_NE(found.y[65 * 4], 0.0f);
}

// By the complex step through the definition, which is exact to rounding.
TEST(Attention, ReferenceGradientAgreesWithTheComplexStep) {
  for (const bool causal : {false, true}) {
    Case c{.batch = 1, .length = 5, .heads = 2, .kv_heads = 1, .d = 3, .causal = causal};
    c.mask = {1, 1, 0, 1, 1};
    c.dropout = 0.4;
    const auto values = normal_values("qkv", c.qkv_shape().numel());
    const auto dy = convert<double>(normal_values("dy", 5 * 6));
    const auto gradient = definition<double>(c, convert<double>(values), dy).dqkv;
    const auto forward = [&](const std::vector<Complex>& qkv) {
      return definition<Complex>(c, qkv, {}).y;
    };
    const auto expected = test::complex_step(forward, convert<Complex>(values), dy);
    EXPECT_LE(relative_error(gradient, expected), 1e-7) << c.text();
  }
}

// Of y · dy along directions of qkv, in double precision: central differences of the definition
// against the gradient that the kernel gives, and against the definition's own.
void expect_finite_differences(const Case& c) {
  const Shape shape = c.qkv_shape();
  const auto qkv = convert<double>(normal_values("qkv", shape.numel()));
  const auto dy = convert<double>(normal_values("dy", c.batch * c.length * c.heads * c.d));
  const auto found = run(c, Order::RowMajor).dqkv;
  const auto exact = definition<double>(c, qkv, dy).dqkv;
  const auto along = [&](const std::vector<double>& direction, double step) {
    std::vector<double> moved = qkv;
    for (size_t i = 0; i < moved.size(); ++i) moved[i] += step * direction[i];
    return dot(definition<double>(c, moved, {}).y, dy);
  };
  for (const char* name : {"queries", "keys", "values", "all"}) {
    // Of unit length, so that a step of 1e-4 leaves an error of some 1e-8.
    std::vector<double> direction = convert<double>(normal_values(name, shape.numel()));
    const std::string part(name);
    for (size_t i = 0; i < direction.size(); ++i) {
      const auto column = static_cast<int64_t>(i) % shape[2];
      const char* of = column < c.heads * c.d                  ? "queries"
                       : column < (c.heads + c.kv_heads) * c.d ? "keys"
                                                               : "values";
      if (part != "all" && part != of) direction[i] = 0.0;
    }
    const double length = std::sqrt(dot(direction, direction));
    for (double& value : direction) value /= length;
    const double difference = (along(direction, 1e-4) - along(direction, -1e-4)) / 2e-4;
    const double scale = std::sqrt(dot(exact, exact));
    EXPECT_NEAR(dot(exact, direction), difference, 1e-7 * scale) << c.text() << ", " << name;
    EXPECT_NEAR(dot(convert<double>(found), direction), difference, 1e-5 * scale)
        << c.text() << ", " << name;
  }
}

TEST(Attention, GradientsAgreeWithFiniteDifferences) {
  for (const int64_t length : {1, 7, 64, 1000}) {
    const Case plain{.batch = length == 1000 ? 1 : 2, .length = length, .heads = 2, .d = 5};
    expect_finite_differences(plain);
    Case causal = plain;
    causal.causal = true;
    expect_finite_differences(causal);
    Case padded = causal;
    padded.mask = padding_mask(plain.batch, length, length / 3);
    expect_finite_differences(padded);
    Case one_key = plain;
    one_key.mask.assign(static_cast<size_t>(plain.batch * length), 0);
    for (int64_t b = 0; b < plain.batch; ++b) {
      one_key.mask[static_cast<size_t>(b * length + length / 2)] = 1;
    }
    expect_finite_differences(one_key);
  }
}

TEST(Attention, LogitsOfAnySizeAreStable) {
  const Case c{.batch = 1, .length = 3, .heads = 1, .kv_heads = 1, .d = 1};
  // q k of up to 1e8: the largest key of each query has all the weight.
  const Tensor qkv =
      Tensor::from({1, 3, 3}, std::vector<float>{1e4f, -1e4f, 1, 1e4f, 1e4f, 2, -1e4f, 0, 3});
  Tensor y = Tensor::empty({1, 3, 1});
  std::vector<float> lse(3);
  const AttentionProblem p = c.problem();
  attention(p, QkvTensors<const Tensor>::joined(p, qkv), y, lse.data());
  EXPECT_EQ(y.to_vector(), (std::vector<float>{2, 2, 1}));
}

TEST(Attention, NanOfAQueryStaysInItsRow) {
  for (const int64_t length : {7, 64, 65}) {
    const Case c{.batch = 1, .length = length, .heads = 1, .kv_heads = 1, .d = 4};
    const AttentionProblem p = c.problem();
    Tensor qkv = test::normal_tensor("qkv", c.qkv_shape());
    for (const int64_t t : {int64_t{2}, length - 1}) qkv.mutable_data()[t * 12 + 1] = NAN;
    for (const Order order : {Order::RowMajor, Order::BatchSlabs}) {
      const Tensor in = qkv.to(order);
      Tensor y = unwritten({1, length, 4}, order);
      std::vector<float> lse(static_cast<size_t>(length));
      attention(p, QkvTensors<const Tensor>::joined(p, in), y, lse.data());
      const auto rows = y.to_vector();
      for (int64_t t = 0; t < length; ++t) {
        const bool is_nan = t == 2 || t == length - 1;
        EXPECT_EQ(std::isnan(rows[static_cast<size_t>(4 * t + 3)]), is_nan) << length << " " << t;
      }
    }
  }
}

TEST(Attention, DropsTheFractionAskedForAndKeepsTheMean) {
  Case c{.batch = 1, .length = 200, .heads = 1, .kv_heads = 1, .d = 1, .dropout = 0.25};
  std::vector<float> values(200 * 3, 0.0f);
  for (size_t t = 0; t < 200; ++t) values[3 * t + 2] = 1.0f;
  Tensor y = Tensor::empty({1, 200, 1});
  std::vector<float> lse(200);
  const AttentionProblem p = c.problem();
  const Tensor qkv = Tensor::from({1, 200, 3}, values);
  attention(p, QkvTensors<const Tensor>::joined(p, qkv), y, lse.data());
  double mean = 0.0;
  for (const float v : y.to_vector()) mean += v / 200.0;
  EXPECT_NEAR(mean, 1.0, 0.01);  // of 40,000 draws: three standard deviations are 0.0087
  const auto first = y.to_vector();
  EXPECT_NE(first[0], first[1]);
}

TEST(Attention, DoesNotDependOnTheNumberOfThreads) {
  const Case masked{.batch = 3,
                    .length = 100,
                    .heads = 4,
                    .kv_heads = 2,
                    .d = 24,
                    .causal = true,
                    .mask = padding_mask(3, 100, 10),
                    .dropout = 0.1};
  const Case on_slabs{.batch = 5, .length = 64, .heads = 4, .kv_heads = 4, .d = 16, .causal = true};
  const Case with_edge{.batch = 5, .length = 65, .heads = 4, .kv_heads = 4, .d = 16};
  const int before = num_threads();
  for (const Case& c : {masked, on_slabs, with_edge}) {
    set_num_threads(1);
    const auto one = run(c, Order::RowMajor);
    for (const int threads : {2, 3}) {
      set_num_threads(threads);
      for (const Order order : {Order::RowMajor, Order::BatchSlabs}) {
        const auto several = run(c, order);
        EXPECT_EQ(one.y, several.y) << c.text();
        EXPECT_EQ(one.lse, several.lse) << c.text();
        EXPECT_EQ(one.dqkv, several.dqkv) << c.text();
      }
    }
  }
  set_num_threads(before);
}

}  // namespace
}  // namespace lacuna
