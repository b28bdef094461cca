// One head of attention and its derivatives in plain C++ on any value type, row by row.
#pragma once

#include <cmath>
#include <complex>
#include <cstdint>
#include <limits>
#include <vector>

#include "lacuna/framework/kernels/attention/attention_head.hpp"
#include "lacuna/framework/kernels/pointwise/dropout_reference.hpp"

namespace lacuna::reference {

/// The factor of a weight: 0 if it is dropped, else 1 / (1 − p).
inline double attention_factor(const AttentionHead& head, int64_t query, int64_t key) {
  if (head.dropout == 0.0) return 1.0;
  const uint64_t row = head.first_row + static_cast<uint64_t>(query);
  const auto words = head.rng->block(row * head.row_blocks() + static_cast<uint64_t>(key / 2));
  const uint32_t threshold = dropout_threshold(head.dropout);
  return words[static_cast<size_t>(key % 2)] >> 8 < threshold ? 0.0 : 1.0 / (1.0 - head.dropout);
}

/// logits[key] = scale q · k for the visible keys; returns the largest real part, −∞ without keys.
template <class T>
double attention_logits(const AttentionHead& head, int64_t query, const T* q, const T* k,
                        std::vector<T>& logits) {
  double largest = -std::numeric_limits<double>::infinity();
  for (int64_t key = 0; key < head.visible(query); ++key) {
    if (!head.sees(key)) continue;
    T sum = T(0);
    for (int64_t c = 0; c < head.features; ++c) {
      sum += q[query * head.features + c] * k[key * head.features + c];
    }
    logits[static_cast<size_t>(key)] = sum * T(head.scale);
    const double logit = static_cast<double>(std::real(logits[static_cast<size_t>(key)]));
    if (!(logit <= largest)) largest = logit;  // a row of NaN gives NaN
  }
  return largest;
}

template <class T>
void attention_head(const AttentionHead& head, const T* q, const T* k, const T* v, T* y, T* lse) {
  std::vector<T> logits(static_cast<size_t>(head.length));
  for (int64_t query = 0; query < head.length; ++query) {
    T* row = y + query * head.features;
    for (int64_t c = 0; c < head.features; ++c) row[c] = T(0);
    const double largest = attention_logits(head, query, q, k, logits);
    lse[query] = T(std::numeric_limits<float>::infinity());
    if (largest == -std::numeric_limits<double>::infinity()) continue;
    T total = T(0);
    for (int64_t key = 0; key < head.visible(query); ++key) {
      if (!head.sees(key)) continue;
      const T power = std::exp(logits[static_cast<size_t>(key)] - T(static_cast<float>(largest)));
      total += power;
      const T weight = power * T(static_cast<float>(attention_factor(head, query, key)));
      for (int64_t c = 0; c < head.features; ++c) row[c] += weight * v[key * head.features + c];
    }
    for (int64_t c = 0; c < head.features; ++c) row[c] /= total;
    lse[query] = T(static_cast<float>(largest)) + std::log(total);
  }
}

/// dq is written; dk and dv are added to.
template <class T>
void attention_head_gradient(const AttentionHead& head, const T* q, const T* k, const T* v,
                             const T* y, const T* lse, const T* dy, T* dq, T* dk, T* dv) {
  const int64_t n = head.features, stride = n;
  std::vector<T> logits(static_cast<size_t>(head.length));
  for (int64_t query = 0; query < head.length; ++query) {
    T projection = T(0);
    for (int64_t c = 0; c < n; ++c) projection += dy[query * stride + c] * y[query * stride + c];
    for (int64_t c = 0; c < n; ++c) dq[query * stride + c] = T(0);
    attention_logits(head, query, q, k, logits);
    for (int64_t key = 0; key < head.visible(query); ++key) {
      if (!head.sees(key)) continue;
      const T weight = std::exp(logits[static_cast<size_t>(key)] - lse[query]);
      const T factor = T(static_cast<float>(attention_factor(head, query, key)));
      T product = T(0);
      for (int64_t c = 0; c < n; ++c) product += dy[query * stride + c] * v[key * stride + c];
      const T slope = weight * (product * factor - projection) * T(head.scale);
      for (int64_t c = 0; c < n; ++c) {
        dq[query * stride + c] += slope * k[key * stride + c];
        dk[key * stride + c] += slope * q[query * stride + c];
        dv[key * stride + c] += weight * factor * dy[query * stride + c];
      }
    }
  }
}

}  // namespace lacuna::reference
