// Layers for the tests of one-shot pruning: weights, and inputs that depend on each other.
#pragma once

#include <gtest/gtest.h>

#include <cmath>
#include <numeric>
#include <string>
#include <vector>

#include "lacuna/framework/core/parallel.h"
#include "lacuna/sparsity/one_shot/one_shot.h"
#include "random_values.h"

namespace lacuna {

/// Inputs [rows, features], each a mixture of its neighbours.
inline std::vector<float> dependent_inputs(int64_t rows, int64_t features,
                                           const std::string& name = "inputs") {
  const std::vector<float> noise = random_values(rows * features, name);
  std::vector<float> inputs(noise.size());
  for (int64_t r = 0; r < rows; ++r) {
    float state = 0.0f;
    for (int64_t i = 0; i < features; ++i) {
      const auto at = static_cast<size_t>(r * features + i);
      state = 0.8f * state + noise[at];
      inputs[at] = state * (1.0f + static_cast<float>(i % 7));
    }
  }
  return inputs;
}

/// Inputs [rows, features] whose directions, drawn by the name, have standard deviations that fall
/// as a power of their index, with squares from 1 to 1 / condition.
inline std::vector<float> inputs_of_condition(int64_t rows, int64_t features, double condition,
                                              const std::string& name = "inputs") {
  const std::vector<float> drawn = random_values(features * features, name + ", directions");
  std::vector<double> basis(drawn.begin(), drawn.end());
  const double power = -0.5 * std::log(condition) / std::log(static_cast<double>(features));
  for (int64_t i = 0; i < features; ++i) {  // by Gram and Schmidt
    double* row = basis.data() + i * features;
    for (int64_t j = 0; j < i; ++j) {
      const double* other = basis.data() + j * features;
      const double along = std::inner_product(row, row + features, other, 0.0);
      for (int64_t c = 0; c < features; ++c) row[c] -= along * other[c];
    }
    const double norm = std::sqrt(std::inner_product(row, row + features, row, 0.0));
    for (int64_t c = 0; c < features; ++c) row[c] /= norm;
  }
  const std::vector<float> noise = random_values(rows * features, name);
  std::vector<float> inputs(noise.size(), 0.0f);
  for (int64_t i = 0; i < features; ++i) {
    const double size = std::pow(static_cast<double>(i + 1), power);
    for (int64_t r = 0; r < rows; ++r) {
      const auto amount = static_cast<float>(size * noise[static_cast<size_t>(r * features + i)]);
      for (int64_t c = 0; c < features; ++c) {
        inputs[static_cast<size_t>(r * features + c)] +=
            amount * static_cast<float>(basis[static_cast<size_t>(i * features + c)]);
      }
    }
  }
  return inputs;
}

inline InputGram gram_of(int64_t features, const std::vector<float>& inputs) {
  InputGram gram(features);
  gram.add(inputs);
  return gram;
}

inline InputGram dependent_gram(int64_t rows, int64_t features) {
  return gram_of(features, dependent_inputs(rows, features));
}

inline constexpr OneShotMethod kAllMethods[] = {OneShotMethod::Magnitude, OneShotMethod::Wanda,
                                                OneShotMethod::SparseGpt, OneShotMethod::Admm};

/// Prunes by the pattern, from all positions, with a method's defaults.
inline PrunedWeight prune(const Tensor& weight, const InputGram& gram, int64_t keep,
                          const OneShotOptions& options, const PatternShape& pattern = {},
                          const MaskSet* present = nullptr) {
  return prune_one_shot("fc1", weight, gram, MaskSelector({}, pattern, weight.shape()), keep,
                        present, options);
}
inline PrunedWeight prune(const Tensor& weight, const InputGram& gram, int64_t keep,
                          OneShotMethod method, const PatternShape& pattern = {}) {
  return prune(weight, gram, keep, OneShotOptions::defaults(method), pattern);
}

/// The mask has `keep` positions, the weight is zero elsewhere, and the error is its error.
inline void expect_pruned(const PrunedWeight& pruned, const Tensor& weight, int64_t keep,
                          const InputGram& gram, const std::string& what) {
  EXPECT_EQ(pruned.mask.count(), keep) << what;
  EXPECT_EQ(pruned.weight.shape(), weight.shape()) << what;
  for (int64_t i = 0; i < weight.numel(); ++i) {
    ASSERT_TRUE(std::isfinite(pruned.weight.data()[i])) << what;
    if (!pruned.mask.test(i)) {
      ASSERT_EQ(pruned.weight.data()[i], 0.0f) << what;
    }
  }
  EXPECT_EQ(pruned.relative_error, relative_output_error(weight, pruned.weight, gram)) << what;
}

/// Calls `compute` on 1, 2 and 5 threads.
template <class Compute>
auto on_several_threads(Compute&& compute) {
  std::vector<decltype(compute())> results;
  const int before = num_threads();
  for (const int threads : {1, 2, 5}) {
    set_num_threads(threads);
    results.push_back(compute());
  }
  set_num_threads(before);
  return results;
}

}  // namespace lacuna
