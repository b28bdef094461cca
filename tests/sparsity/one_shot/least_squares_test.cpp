#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

#include "lacuna/framework/core/error.h"
#include "lacuna/sparsity/one_shot/complement_fit.hpp"
#include "sparsity/one_shot/layers.h"
#include "throws.h"

namespace lacuna::least_squares_test {
namespace {

MaskSet every(const Shape& shape, int64_t nth) {
  BitMask mask = BitMask::zeros(shape.numel());
  for (int64_t i = 0; i < shape.numel(); i += nth) mask.set(i);
  return MaskSet(shape, std::move(mask));
}

// On the support the gradient (W − W₀)H is zero, off it the weights are.
TEST(LeastSquares, LeavesNoGradientOnTheSupport) {
  for (const auto& [out, in] : {std::pair<int64_t, int64_t>{1, 1}, {5, 12}, {7, 150}}) {
    const Tensor weight = random_tensor({out, in}, "w");
    const InputGram gram = dependent_gram(400, in);
    const MaskSet mask = every(weight.shape(), 3);
    const PrunedWeight fitted = fit_least_squares("fc1", weight, gram, mask);
    EXPECT_THAT(fitted.messages, testing::IsEmpty());
    EXPECT_EQ(fitted.mask, mask);
    EXPECT_EQ(fitted.relative_error, relative_output_error(weight, fitted.weight, gram));
    const float* w = weight.data();
    const float* f = fitted.weight.data();
    for (int64_t r = 0; r < out; ++r) {
      for (int64_t c = 0; c < in; ++c) {
        if (!mask.test(r * in + c)) {
          ASSERT_EQ(f[r * in + c], 0.0f);
          continue;
        }
        double gradient = 0.0, size = 0.0;
        for (int64_t j = 0; j < in; ++j) {
          const double h = gram.matrix()[j * in + c];
          gradient += (static_cast<double>(f[r * in + j]) - w[r * in + j]) * h;
          size += std::abs(w[r * in + j] * h);
        }
        ASSERT_NEAR(gradient, 0.0, 1e-6 * size) << r << ", " << c;
      }
    }
  }
}

TEST(LeastSquares, LosesLessThanKeepingTheWeightsAndNothingWhereAllStay) {
  const Tensor weight = random_tensor({6, 40}, "w");
  const InputGram gram = dependent_gram(300, 40);
  const PrunedWeight kept = prune(weight, gram, 120, OneShotMethod::Wanda);
  const PrunedWeight fitted = fit_least_squares("fc1", weight, gram, kept.mask);
  EXPECT_LT(fitted.relative_error, kept.relative_error);
  const PrunedWeight whole = fit_least_squares("fc1", weight, gram, MaskSet::all(weight.shape()));
  for (int64_t i = 0; i < weight.numel(); ++i) {
    ASSERT_NEAR(whole.weight.data()[i], weight.data()[i], 1e-5);
  }
  const PrunedWeight none = fit_least_squares("fc1", weight, gram, MaskSet(weight.shape()));
  EXPECT_EQ(none.relative_error, 1.0);
  EXPECT_EQ(none.weight.to_vector(), std::vector<float>(240, 0.0f));
}

// Where most is kept, what is pruned is what is factored: to the same weights.
TEST(LeastSquares, AreTheSameByWhatIsPruned) {
  const int64_t out = 40, in = 60;
  const Tensor weight = random_tensor({out, in}, "w");
  std::vector<float> inputs = dependent_inputs(300, in);
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (i % in == 3 || i % in == 17) inputs[i] = 0.0f;  // dead: kept in some rows
  }
  const InputGram gram = gram_of(in, inputs);
  OneShotOptions options = OneShotOptions::defaults(OneShotMethod::Magnitude);
  const MaskSet mask = prune(weight, gram, out * in * 4 / 5, options).mask;
  // Damping that is next to nothing is by what is kept.
  const PrunedWeight by_kept = fit_least_squares("fc1", weight, gram, mask, 1e-14);
  const PrunedWeight by_pruned = fit_least_squares("fc1", weight, gram, mask);
  const auto complement = ComplementFit::of(in, gram.matrix());
  ASSERT_TRUE(complement.has_value());
  std::vector<float> alone(static_cast<size_t>(out * in), 0.0f);
  for (int64_t r = 0; r < out; ++r) {
    ASSERT_TRUE(complement->fit(mask.positions().row(r), std::vector<int64_t>{r}, weight.data(),
                                alone.data()));
  }
  EXPECT_EQ(alone, by_pruned.weight.to_vector());
  for (int64_t i = 0; i < weight.numel(); ++i) {
    ASSERT_NEAR(by_kept.weight.data()[i], by_pruned.weight.data()[i], 1e-5) << i;
    if (!mask.test(i)) {
      ASSERT_EQ(by_pruned.weight.data()[i], 0.0f);
    }
  }
  // A singular matrix has no inverse: the rows are fitted by what they keep, with a message.
  const InputGram singular = dependent_gram(20, in);
  EXPECT_FALSE(ComplementFit::of(in, singular.matrix()).has_value());
  EXPECT_EQ(fit_least_squares("fc1", weight, singular, mask).messages.size(), 1u);
}

// Rows of one support are solved together: as each alone.
TEST(LeastSquares, RowsOfOneSupportGetWhatTheyGetAlone) {
  const Tensor weight = random_tensor({4, 10}, "w");
  const InputGram gram = dependent_gram(100, 10);
  const MaskSet mask = every(weight.shape(), 2);  // 10 is even: every row has the same columns
  const PrunedWeight together = fit_least_squares("fc1", weight, gram, mask);
  for (int64_t r = 0; r < 4; ++r) {
    const Tensor row = Tensor::from({1, 10}, weight.storage().subspan(r * 10, 10));
    const PrunedWeight alone = fit_least_squares("fc1", row, gram, every(row.shape(), 2));
    for (int64_t c = 0; c < 10; ++c) {
      EXPECT_EQ(together.weight.data()[r * 10 + c], alone.weight.data()[c]);
    }
  }
}

TEST(LeastSquares, DampingIsAPartOfTheMeanOfTheDiagonal) {
  // One input: (h + d·h) w = h·w₀.
  const InputGram gram = InputGram::of_matrix(1, std::vector<double>{8.0});
  const Tensor weight = Tensor::from({1, 1}, std::vector<float>{3.0f});
  const MaskSet all = MaskSet::all(weight.shape());
  EXPECT_FLOAT_EQ(fit_least_squares("fc1", weight, gram, all, 0.5).weight.item(), 2.0f);
}

// Two inputs that are one: damping is raised, with a message, and pulls to what was there.
TEST(LeastSquares, RaisesDampingWhereInputsDependOnEachOther) {
  const InputGram gram =
      InputGram::of_matrix(3, std::vector<double>{2, 2, 0, 2, 2, 0, 0, 0, 1}, 10);
  const Tensor weight = Tensor::from({2, 3}, std::vector<float>{1, 3, 5, 1, 1, 1});
  BitMask mask = BitMask::ones(6);
  mask.reset(4);
  const PrunedWeight fitted =
      fit_least_squares("fc1", weight, gram, MaskSet(weight.shape(), std::move(mask)));
  ASSERT_EQ(fitted.messages.size(), 1u);
  EXPECT_THAT(fitted.messages[0], testing::AllOf(testing::StartsWith("layer 'fc1': "),
                                                 testing::HasSubstr("1 of 2 rows")));
  EXPECT_NEAR(fitted.weight.data()[0], 1.0f, 1e-4);
  EXPECT_NEAR(fitted.weight.data()[1], 3.0f, 1e-4);
  EXPECT_NEAR(fitted.weight.data()[3], 2.0f, 1e-4);
  EXPECT_NEAR(fitted.relative_error, 0.0, 1e-9);
}

TEST(LeastSquares, WeightsOfDeadInputsStay) {
  const InputGram gram = InputGram::of_matrix(3, std::vector<double>{2, 0, 1, 0, 0, 0, 1, 0, 1});
  const Tensor weight = Tensor::from({1, 3}, std::vector<float>{1, 3, 5});
  const PrunedWeight fitted = fit_least_squares("fc1", weight, gram, MaskSet::all(weight.shape()));
  EXPECT_EQ(fitted.weight.data()[1], 3.0f);
  EXPECT_THAT(fitted.messages, testing::IsEmpty());
}

TEST(LeastSquares, DoNotDependOnTheNumberOfThreads) {
  const Tensor weight = random_tensor({300, 130}, "w");  // more than one chunk of rows
  const InputGram gram = dependent_gram(500, 130);
  for (const int64_t kept : {60, 110}) {
    const MaskSet mask = prune(weight, gram, 300 * kept, OneShotMethod::Magnitude).mask;
    const auto results = on_several_threads(
        [&] { return fit_least_squares("fc1", weight, gram, mask).weight.to_vector(); });
    EXPECT_EQ(results[0], results[1]);
    EXPECT_EQ(results[0], results[2]);
  }
}

TEST(LeastSquares, SaysWhoseSizesDiffer) {
  const Tensor weight = random_tensor({2, 3}, "w");
  const InputGram gram = dependent_gram(5, 4);
  expect_throws<ShapeError>(
      [&] { fit_least_squares("fc1", weight, gram, MaskSet::all(weight.shape())); },
      "layer 'fc1': a weight of shape [2, 3] has 3 inputs, but its calibration has 4 features");
  expect_throws<ConfigError>(
      [&] {
        fit_least_squares("fc1", weight, dependent_gram(5, 3), MaskSet::all(weight.shape()), -1.0);
      },
      "layer 'fc1': damping");
  const double infinity = std::numeric_limits<double>::infinity();
  const InputGram broken =
      InputGram::of_matrix(3, std::vector<double>{1, 0, 0, infinity, 1, 0, 0, 0, 1});
  expect_throws<DataError>(
      [&] { fit_least_squares("fc1", weight, broken, MaskSet::all(weight.shape())); },
      "layer 'fc1': least squares have no solution");
}

}  // namespace
}  // namespace lacuna::least_squares_test
