// Cases of attention, what the kernels give for them, and what the definition gives.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "framework/kernels/test_values.h"
#include "lacuna/framework/kernels/attention/attention.hpp"
#include "lacuna/framework/kernels/attention/attention_reference.hpp"

namespace lacuna::test {

struct AttentionCase {
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
inline std::vector<int64_t> padding_mask(int64_t batch, int64_t length, int64_t padding) {
  std::vector<int64_t> mask(static_cast<size_t>(batch * length), 1);
  for (int64_t b = 0; b < batch; ++b) {
    for (int64_t t = b == 1 ? 0 : length - padding; t < length; ++t) {
      mask[static_cast<size_t>(b * length + t)] = 0;
    }
  }
  return mask;
}

template <class T>
struct AttentionResult {
  std::vector<T> y, lse, dqkv;
};

// From the definition, head by head, in type T. Without a dy, y and lse alone.
template <class T>
AttentionResult<T> attention_by_definition(const AttentionCase& c, const std::vector<T>& qkv,
                                           const std::vector<T>& dy) {
  const AttentionProblem p = c.problem();
  const int64_t width = p.features(), out = c.heads * c.d;
  AttentionResult<T> result{std::vector<T>(static_cast<size_t>(c.batch * c.length * out)),
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
inline Tensor unwritten(const Shape& shape, Order order) {
  Tensor x = Tensor::empty(shape, order);
  std::ranges::fill(x.mutable_storage(), NAN);
  x.clear_padding();
  return x;
}

inline bool has_clear_padding(const Tensor& x) {
  Tensor cleared = x.clone();
  cleared.clear_padding();
  return std::ranges::equal(x.storage(), cleared.storage());
}

inline AttentionResult<float> run_attention(const AttentionCase& c, Order order) {
  const AttentionProblem p = c.problem();
  const Shape shape = c.qkv_shape(), out = shape.with_features(c.heads * c.d);
  const Tensor qkv = normal_tensor("qkv", shape).to(order);
  const Tensor dy = normal_tensor("dy", out).to(order);
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

}  // namespace lacuna::test
