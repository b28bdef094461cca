#include "lacuna/framework/kernels/attention/attention.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "framework/kernels/attention/attention_cases.h"
#include "lacuna/framework/core/parallel.h"

namespace lacuna::attention_test {
namespace {

using test::attention_by_definition;
using test::convert;
using test::normal_values;
using test::padding_mask;
using test::relative_error;
using test::run_attention;
using test::unwritten;
using Case = test::AttentionCase;

void expect_agreement(const Case& c) {
  const auto qkv = convert<double>(normal_values("qkv", c.qkv_shape().numel()));
  const auto dy = convert<double>(normal_values("dy", c.batch * c.length * c.heads * c.d));
  const auto expected = attention_by_definition<double>(c, qkv, dy);
  for (const Order order : {Order::RowMajor, Order::BatchSlabs}) {
    const auto found = run_attention(c, order);
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
  const auto found = run_attention(c, Order::RowMajor);
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
  const auto found = run_attention(c, Order::RowMajor);
  for (size_t i = 0; i < 65 * 4; ++i) EXPECT_EQ(found.y[i], 0.0f);
  EXPECT_EQ(found.lse[0], INFINITY);
  for (size_t i = 0; i < 65 * 12; ++i) EXPECT_EQ(found.dqkv[i], 0.0f);
  EXPECT_NE(found.y[65 * 4], 0.0f);
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
    const auto one = run_attention(c, Order::RowMajor);
    for (const int threads : {2, 3}) {
      set_num_threads(threads);
      for (const Order order : {Order::RowMajor, Order::BatchSlabs}) {
        const auto several = run_attention(c, order);
        EXPECT_EQ(one.y, several.y) << c.text();
        EXPECT_EQ(one.lse, several.lse) << c.text();
        EXPECT_EQ(one.dqkv, several.dqkv) << c.text();
      }
    }
  }
  set_num_threads(before);
}

}  // namespace
}  // namespace lacuna::attention_test
