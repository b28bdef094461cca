// What one-shot pruning holds beyond the model and the calibration examples: at most three Gram
// matrices, counted in live bytes.
#include <gtest/gtest.h>

#include <memory>

#include "lacuna/framework/core/parallel.h"
#include "lacuna/framework/nn/sequential.h"
#include "lacuna/layers/linear.h"
#include "lacuna/sparsity/one_shot_pruning.h"
#include "memory/live_bytes.h"
#include "random_values.h"

namespace lacuna::one_shot_memory_test {
namespace {

/// A linear layer [out, in] pruned by `options`; the most that was held meanwhile beyond what was
/// there before, in Gram matrices of in² doubles.
double most_grams(int64_t out, int64_t in, const OneShotPruningOptions& options, bool calibrates) {
  Sequential model;
  model.add<Linear>("fc", {.in_features = in, .out_features = out});
  model.initialize(3);
  const int64_t batch_rows = 64, batches = in / 60;
  const Tensor x = random_tensor({batches, batch_rows, in}, "x");
  OneShotPruning algorithm(options);
  if (calibrates) {
    algorithm.calibrate_with([&](Module& m) {
      const auto size = static_cast<size_t>(batch_rows * in);
      for (size_t batch = 0; batch < static_cast<size_t>(batches); ++batch) {
        m(Variable(Tensor::from({batch_rows, in}, x.storage().subspan(batch * size, size))));
      }
    });
  }
  model.apply(algorithm);
  const int64_t before = bench::live_bytes();
  bench::reset_peak();
  algorithm.prune();
  const auto held = static_cast<double>(bench::peak_live_bytes() - before);
  EXPECT_EQ(model.parameters().front()->pattern()->nnz(), algorithm.pruned().front().nnz);
  return held / (8.0 * static_cast<double>(in * in));
}

struct Case {
  OneShotMethod method;
  double sparsity;
  bool least_squares;
  PatternShape pattern = {};
};

// Each thread has scratch memory of its own, so that their number is given.
class OneShotMemory : public testing::TestWithParam<int> {
 protected:
  OneShotMemory() { set_num_threads(GetParam()); }
  ~OneShotMemory() override { set_num_threads(before_); }

 private:
  const int before_ = num_threads();
};

TEST_P(OneShotMemory, IsAtMostThreeGramMatrices) {
  using enum OneShotMethod;
  for (const Case& c : std::initializer_list<Case>{{Magnitude, 0.5, false},
                                                   {Wanda, 0.5, false},
                                                   {SparseGpt, 0.5, false},
                                                   {SparseGpt, 0.0, false, PatternShape::nm(2, 4)},
                                                   {Admm, 0.5, false},
                                                   {Admm, 0.0, true, PatternShape::nm(2, 4)},
                                                   {SparseGpt, 0.2, true},
                                                   {Admm, 0.5, true},
                                                   {Wanda, 0.8, true}}) {
    OneShotPruningOptions options{.common = {.sparsity = c.sparsity},
                                  .pruning = OneShotOptions::defaults(c.method)};
    options.common.pattern = c.pattern;
    options.pruning.least_squares = c.least_squares;
    options.pruning.rounds = 4;  // each takes what any other does
    options.pruning.gradual_rounds = 3;
    const double grams = most_grams(128, 768, options, true);
    EXPECT_LE(grams, 3.0) << to_string(c.method) << " " << c.sparsity << " " << c.least_squares;
    EXPECT_GE(grams, 1.0);
  }
}

INSTANTIATE_TEST_SUITE_P(Threads, OneShotMemory, testing::Values(1, 4));

// What is told of it is of independent inputs then, which need no matrix.
TEST(MagnitudeMemory, WithoutExamplesThereIsNoGramMatrix) {
  EXPECT_LE(most_grams(64, 2048,
                       {.common = {.sparsity = 0.5},
                        .pruning = OneShotOptions::defaults(OneShotMethod::Magnitude)},
                       false),
            0.2);  // a few copies of the weight, which is of 1/64
}

}  // namespace
}  // namespace lacuna::one_shot_memory_test
