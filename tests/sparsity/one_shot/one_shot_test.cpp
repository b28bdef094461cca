#include "lacuna/sparsity/one_shot/one_shot.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <numeric>
#include <vector>

#include "lacuna/framework/core/error.h"
#include "sparsity/one_shot/layers.h"
#include "throws.h"

namespace lacuna::one_shot_test {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;

InputGram identity(int64_t features) {
  std::vector<double> matrix(static_cast<size_t>(features * features), 0.0);
  for (int64_t i = 0; i < features; ++i) matrix[static_cast<size_t>(i * features + i)] = 1.0;
  return InputGram::of_matrix(features, matrix);
}

TEST(OneShot, CountsAreExactForEveryMethodAndGranularity) {
  for (const auto& [out, in] :
       {std::pair<int64_t, int64_t>{1, 1}, {1, 9}, {6, 1}, {7, 13}, {5, 200}}) {
    const Tensor weight = random_tensor({out, in}, "w");
    const InputGram gram = dependent_gram(300, in);
    for (const OneShotMethod method : kAllMethods) {
      for (const auto granularity : {OneShotGranularity::Layer, OneShotGranularity::Row}) {
        for (const int64_t keep : {int64_t{0}, int64_t{1}, out * in / 3, out * in - 1, out * in}) {
          for (const bool least_squares : {false, true}) {
            OneShotOptions options = OneShotOptions::defaults(method);
            options.granularity = granularity;
            options.least_squares = least_squares;
            options.block = 64;
            const std::string what = std::string(to_string(method)) + ", " +
                                     to_string(granularity) + ", " + std::to_string(keep);
            const PrunedWeight pruned = prune(weight, gram, keep, options);
            expect_pruned(pruned, weight, keep, gram, what);
            EXPECT_THAT(pruned.messages, IsEmpty()) << what;
            if (keep == 0) {
              EXPECT_EQ(pruned.relative_error, 1.0);
            }
            if (keep == out * in) {
              EXPECT_LT(pruned.relative_error, 1e-9) << what;
            }
          }
        }
      }
    }
  }
}

TEST(OneShot, RowsKeepEqualShares) {
  const Tensor weight = random_tensor({5, 200}, "w");
  const InputGram gram = dependent_gram(300, 200);
  for (const OneShotMethod method : kAllMethods) {
    OneShotOptions options = OneShotOptions::defaults(method);
    options.granularity = OneShotGranularity::Row;
    const PrunedWeight pruned = prune(weight, gram, 402, options);
    std::vector<size_t> counts;
    for (int64_t r = 0; r < 5; ++r) counts.push_back(pruned.mask.positions().row(r).size());
    EXPECT_EQ(counts, (std::vector<size_t>{81, 81, 80, 80, 80})) << to_string(method);
  }
}

TEST(OneShot, SparseGptsBlocksOfColumnsKeepEqualShares) {
  const Tensor weight = random_tensor({3, 96}, "w");
  OneShotOptions options = OneShotOptions::defaults(OneShotMethod::SparseGpt);
  options.block = 32;
  const PrunedWeight pruned = prune(weight, dependent_gram(300, 96), 30, options);
  std::vector<int> counts(3, 0);
  pruned.mask.positions().for_each([&](int64_t i) { ++counts[static_cast<size_t>(i % 96 / 32)]; });
  EXPECT_EQ(counts, (std::vector<int>{10, 10, 10}));
}

TEST(OneShot, EqualScoresKeepTheLowestIndices) {
  const Tensor weight = Tensor::full({3, 4}, -2.0f);
  for (const OneShotMethod method : kAllMethods) {
    OneShotOptions options = OneShotOptions::defaults(method);
    options.rounds = 1;  // further ones of admm weigh what was pruned anew
    options.granularity = OneShotGranularity::Layer;
    EXPECT_EQ(prune(weight, identity(4), 5, options).mask.bits().to_bytes(),
              (std::vector<uint8_t>{1, 1, 1, 1, 1, 0, 0, 0, 0, 0, 0, 0}))
        << to_string(method);
    options.granularity = OneShotGranularity::Row;
    EXPECT_EQ(prune(weight, identity(4), 6, options).mask.bits().to_bytes(),
              (std::vector<uint8_t>{1, 1, 0, 0, 1, 1, 0, 0, 1, 1, 0, 0}))
        << to_string(method);
    EXPECT_EQ(prune(weight, identity(4), 6, options, PatternShape::nm(2, 4)).mask.bits().to_bytes(),
              (std::vector<uint8_t>{1, 1, 0, 0, 1, 1, 0, 0, 1, 1, 0, 0}))
        << to_string(method);
  }
}

TEST(OneShot, MagnitudeAndWandaKeepTheLargestOfTheirScores) {
  const Tensor weight = Tensor::from({2, 3}, std::vector<float>{-3, 2, 1, 4, -0.5, 5});
  const InputGram gram =
      InputGram::of_matrix(3, std::vector<double>{1, 0, 0, 0, 100, 0, 0, 0, 4}, 4);
  EXPECT_EQ(prune(weight, gram, 3, OneShotMethod::Magnitude).mask.bits().to_bytes(),
            (std::vector<uint8_t>{1, 0, 0, 1, 0, 1}));
  // 3, 20, 2 and 4, 5, 10.
  EXPECT_EQ(prune(weight, gram, 3, OneShotMethod::Wanda).mask.bits().to_bytes(),
            (std::vector<uint8_t>{1, 1, 0, 0, 0, 1}));
}

TEST(OneShot, DeadInputsGoFirstAndDoNoHarm) {
  const int64_t in = 24;
  std::vector<float> inputs = dependent_inputs(200, in);
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (i % in == 3 || i % in == 20) inputs[i] = 0.0f;
  }
  const InputGram gram = gram_of(in, inputs);
  const Tensor weight = random_tensor({8, in}, "w");
  const int64_t live = 8 * (in - 2);
  for (const OneShotMethod method :
       {OneShotMethod::Wanda, OneShotMethod::SparseGpt, OneShotMethod::Admm}) {
    for (const auto granularity : {OneShotGranularity::Layer, OneShotGranularity::Row}) {
      OneShotOptions options = OneShotOptions::defaults(method);
      options.granularity = granularity;
      const PrunedWeight pruned = prune(weight, gram, live, options);
      EXPECT_THAT(pruned.messages, IsEmpty());
      expect_pruned(pruned, weight, live, gram, to_string(method));
      for (int64_t r = 0; r < 8; ++r) {
        EXPECT_FALSE(pruned.mask.test(r * in + 3)) << to_string(method);
        EXPECT_FALSE(pruned.mask.test(r * in + 20)) << to_string(method);
      }
      const PrunedWeight all = prune(weight, gram, 8 * in, options);
      const float expected = method == OneShotMethod::SparseGpt ? 0.0f : weight.data()[3];
      EXPECT_NEAR(all.weight.data()[3], expected, 1e-5) << to_string(method);
    }
  }
  // Where every input is dead, nothing is known, and nothing breaks.
  const InputGram nothing = gram_of(in, std::vector<float>(inputs.size(), 0.0f));
  for (const OneShotMethod method : kAllMethods) {
    const PrunedWeight pruned = prune(weight, nothing, 50, method);
    EXPECT_EQ(pruned.mask.count(), 50) << to_string(method);
    EXPECT_EQ(pruned.relative_error, 0.0);
  }
}

TEST(OneShot, DampingRisesWithAMessageWhereTheGramMatrixIsSingular) {
  // Fewer rows than features.
  const InputGram gram = dependent_gram(10, 40);
  const Tensor weight = random_tensor({4, 40}, "w");
  OneShotOptions options = OneShotOptions::defaults(OneShotMethod::SparseGpt);
  EXPECT_THAT(prune(weight, gram, 80, options).messages, IsEmpty());
  options.damping = 0.0;
  const PrunedWeight pruned = prune(weight, gram, 80, options);
  expect_pruned(pruned, weight, 80, gram, "sparsegpt");
  ASSERT_EQ(pruned.messages.size(), 1u);
  EXPECT_THAT(pruned.messages[0],
              testing::AllOf(HasSubstr("layer 'fc1': "), HasSubstr("damping is raised to ")));
  options.least_squares = true;
  EXPECT_EQ(prune(weight, gram, 80, options).messages.size(), 2u);
  // No damping helps against this.
  const double huge = 1e300;
  const InputGram broken = InputGram::of_matrix(2, std::vector<double>{1, 0, huge, 1});
  options.least_squares = false;
  expect_throws<DataError>(
      [&] {
        prune(random_tensor({2, 2}, "w"), broken, 2, options);
      },
      "layer 'fc1': the Gram matrix of its inputs cannot be factored");
}

TEST(OneShot, NamesTheLayerWhoseNumbersAreNotFinite) {
  const float nan = std::nanf("");
  for (const OneShotMethod method : kAllMethods) {
    for (const float bad : {nan, std::numeric_limits<float>::infinity()}) {
      std::vector<float> inputs = dependent_inputs(50, 6);
      inputs[6 * 7 + 2] = bad;
      expect_throws<DataError>(
          [&] {
            prune(random_tensor({3, 6}, "w"), gram_of(6, inputs), 9, method);
          },
          "layer 'fc1': its calibration inputs hold values that are not finite");
      Tensor weight = random_tensor({3, 6}, "w");
      weight.mutable_data()[5] = bad;
      expect_throws<DataError>([&] { prune(weight, dependent_gram(50, 6), 9, method); },
                               "layer 'fc1': its weight holds values that are not finite, at 5");
    }
    expect_throws<DataError>(
        [&] {
          prune(random_tensor({3, 6}, "w"), InputGram(6), 9, method);
        },
        "layer 'fc1': its calibration has no rows: the examples give it no input; give more or "
        "other "
        "ones (`calibration`)");
  }
}

TEST(OneShot, ResultsDoNotDependOnTheNumberOfThreads) {
  const Tensor weight = random_tensor({160, 192}, "w");
  const InputGram gram = dependent_gram(400, 192);
  for (const PatternShape& pattern : {PatternShape(), PatternShape::nm(2, 4)}) {
    for (const OneShotMethod method : kAllMethods) {
      const auto results = on_several_threads([&] {
        return prune(weight, gram, weight.numel() / 2, method, pattern).weight.to_vector();
      });
      EXPECT_EQ(results[0], results[1]) << to_string(method);
      EXPECT_EQ(results[0], results[2]) << to_string(method);
    }
  }
}

TEST(OneShot, EachMethodLosesLessThanTheSimplerOne) {
  const Tensor weight = random_tensor({32, 96}, "w");
  const InputGram gram = dependent_gram(500, 96);
  for (const int64_t keep : {weight.numel() / 2, weight.numel() / 5}) {
    double before = 1.0;
    for (const OneShotMethod method : kAllMethods) {
      const double error = prune(weight, gram, keep, method).relative_error;
      EXPECT_LT(error, before) << to_string(method);
      before = error;
    }
    OneShotOptions options = OneShotOptions::defaults(OneShotMethod::Admm);
    options.least_squares = true;
    EXPECT_LT(prune(weight, gram, keep, options).relative_error, before);
  }
}

TEST(OneShot, RefusesWhatCannotBe) {
  const Tensor weight = random_tensor({4, 8}, "w");
  const InputGram gram = dependent_gram(50, 8);
  const auto refuses = [&](OneShotOptions options, int64_t keep, const std::string& why) {
    expect_throws<ConfigError>([&] { prune(weight, gram, keep, options); }, "layer 'fc1': " + why);
  };
  const OneShotOptions options = OneShotOptions::defaults(OneShotMethod::Admm);
  refuses(options, 33, "cannot keep 33 positions of 32");
  refuses(options, -1, "cannot keep -1 positions of 32");
  OneShotOptions other = options;
  other.damping = -0.1;
  refuses(other, 8, "damping must be at least 0");
  other = options;
  other.sparsity = 1.5;
  refuses(other, 8, "sparsity must be in [0, 1]");
  other = options;
  other.rho = 0.0;
  refuses(other, 8, "block, rounds and rho must be above 0");
  other = options;
  other.keep_of_parts = {1, 2};
  refuses(other, 8, "keep_of_parts must add up to keep");
  other.granularity = OneShotGranularity::Row;
  refuses(other, 3, "keep_of_parts needs one count for each row, from 0 to");
  other.keep_of_parts = {9, 0, 0, 0};
  refuses(other, 9, "keep_of_parts needs one count for each row, from 0 to");
  other.method = OneShotMethod::SparseGpt;
  other.granularity = OneShotGranularity::Layer;
  refuses(other, 9, "keep_of_parts needs one count for each block of columns");
  expect_throws<ConfigError>([&] { prune(weight, gram, 6, options, PatternShape::block(2, 2)); },
                             "layer 'fc1': 6 positions to keep are not a multiple of 4");
  const MaskSelector grouped(ScoreGroups::rows(2), {}, weight.shape());
  expect_throws<ConfigError>(
      [&] {
        prune_one_shot("fc1", weight, gram, grouped, 8, nullptr,
                       OneShotOptions::defaults(OneShotMethod::SparseGpt));
      },
      "layer 'fc1': sparsegpt does not support score groups");
  expect_throws<ConfigError>(
      [&] {
        prune_one_shot("fc1", weight, gram, grouped, 8, nullptr,
                       OneShotOptions::defaults(OneShotMethod::Wanda));
      },
      "layer 'fc1': positions compete in their rows or in score groups, not in both");
  expect_throws<ShapeError>(
      [&] { prune(weight, dependent_gram(50, 9), 8, options); },
      "a weight of shape [4, 8] has 8 inputs, but its calibration has 9 features");
}

TEST(OneShot, MethodsHaveNames) {
  EXPECT_STREQ(to_string(OneShotMethod::SparseGpt), "sparsegpt");
  EXPECT_STREQ(to_string(OneShotGranularity::Row), "row");
  EXPECT_STREQ(to_string(OneShotGranularity::Layer), "layer");
}

// Without a matrix the sums are those by the identity matrix, but for their order.
TEST(RelativeOutputError, OfIndependentInputsNeedsNoMatrix) {
  const Tensor weight = random_tensor({300, 70}, "w");
  const PrunedWeight pruned =
      prune(weight, InputGram::of_independent(70), 9000, OneShotMethod::Magnitude);
  const PrunedWeight expected = prune(weight, identity(70), 9000, OneShotMethod::Magnitude);
  EXPECT_EQ(pruned.mask, expected.mask);
  EXPECT_NEAR(pruned.relative_error, expected.relative_error, 1e-12);
}

TEST(RelativeOutputError, IsThePartOfTheOutputsSquareThatIsLost) {
  const InputGram gram = InputGram::of_matrix(2, std::vector<double>{1, 0, 0, 4});
  const Tensor weight = Tensor::from({1, 2}, std::vector<float>{3, 2});
  const Tensor pruned = Tensor::from({1, 2}, std::vector<float>{0, 2});
  EXPECT_DOUBLE_EQ(relative_output_error(weight, pruned, gram), 9.0 / 25.0);
  EXPECT_EQ(relative_output_error(weight, weight, gram), 0.0);
  const Tensor zero = Tensor::zeros({1, 2});
  EXPECT_EQ(relative_output_error(zero, zero, gram), 0.0);
  EXPECT_EQ(relative_output_error(zero, weight, gram), std::numeric_limits<double>::infinity());
  EXPECT_DOUBLE_EQ(relative_output_error(weight, pruned, InputGram::of_independent(2)), 9.0 / 13.0);
  expect_throws<ShapeError>(
      [&] {
        relative_output_error(weight, Tensor::zeros({2, 2}), gram);
      },
      "[1, 2]");
}

}  // namespace
}  // namespace lacuna::one_shot_test
