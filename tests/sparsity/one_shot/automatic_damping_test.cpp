// Damping that is chosen by the inputs, and damping that is given.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <span>
#include <string>
#include <vector>

#include "lacuna/sparsity/one_shot/damped_factor.hpp"
#include "sparsity/one_shot/layers.h"

namespace lacuna::automatic_damping_test {
namespace {

struct LayerShape {
  int64_t out, in;
};
constexpr LayerShape kShapes[] = {{32, 64}, {24, 150}, {96, 96}};

/// Rows of inputs, of which every seventh is dead: some to learn from, and 1000 held out.
struct HalfSeenInputs {
  HalfSeenInputs(int64_t rows, int64_t features, std::vector<float> inputs, float size)
      : seen(features), held_out(features) {
    for (size_t i = 0; i < inputs.size(); ++i) {
      inputs[i] *= static_cast<int64_t>(i) % features % 7 == 3 ? 0.0f : size;
    }
    const std::span<const float> all(inputs);
    seen.add(all.first(static_cast<size_t>(rows * features)));
    held_out.add(all.subspan(static_cast<size_t>(rows * features)));
  }
  InputGram seen, held_out;
};

/// The damping that amounts to SparseGPT's own code: with H = 2 / rows · XᵀX, of which dead
/// elements of the diagonal are set to 1 first, 0.01 of the diagonal's mean.
double authors_damping(const InputGram& gram) {
  const double scale = 2.0 / static_cast<double>(gram.rows());
  double mean = 0.0, mean_with_ones = 0.0;
  for (const double square : gram.squares()) {
    mean += scale * square;
    mean_with_ones += square == 0.0 ? 1.0 : scale * square;
  }
  return 0.01 * mean_with_ones / mean;
}

// Sizes matter to the authors' rule alone, as dead elements of the diagonal are 1 whatever the
// others are. A mask is a matter of luck in its last digits: up to 6 % for a single one.
TEST(AutomaticDamping, LosesNoMoreOnHeldOutRowsThanTheAuthorsRule) {
  double sum = 0.0;
  int count = 0;
  const auto compare = [&](const Tensor& weight, const HalfSeenInputs& inputs,
                           const std::string& what) {
    for (const int64_t keep : {weight.numel() / 2, weight.numel() * 3 / 10}) {
      OneShotOptions options = OneShotOptions::defaults(OneShotMethod::SparseGpt);
      const auto lost = [&] {
        const PrunedWeight pruned = prune(weight, inputs.seen, keep, options);
        EXPECT_THAT(pruned.messages, testing::IsEmpty());
        return relative_output_error(weight, pruned.weight, inputs.held_out);
      };
      const double found = lost();
      options.damping = authors_damping(inputs.seen);
      const double ratio = found / lost();
      EXPECT_LE(ratio, 1.06) << what << ", " << keep << " kept";
      sum += std::log(ratio);
      ++count;
    }
  };
  for (const auto& [out, in] : kShapes) {
    const Tensor weight = random_tensor({out, in}, "w");
    for (const int64_t rows : {in / 2, 4 * in}) {
      for (const float size : {1.0f, 0.05f}) {
        const std::string what = std::to_string(out) + " x " + std::to_string(in) + ", " +
                                 std::to_string(rows) + " rows of size " + std::to_string(size);
        compare(weight, {rows, in, dependent_inputs(rows + 1000, in), size}, what);
        for (const double condition : {1e2, 1e4}) {
          compare(weight, {rows, in, inputs_of_condition(rows + 1000, in, condition), size},
                  what + ", condition " + std::to_string(condition));
        }
      }
    }
  }
  EXPECT_LE(std::exp(sum / count), 0.85);
}

// What the methods see of `gram` with more on its diagonal, where it has anything there.
InputGram with_more(const InputGram& gram, double part_of_mean, double part_of_each) {
  const int64_t in = gram.features();
  std::vector<double> matrix(gram.matrix().begin(), gram.matrix().end());
  double mean = 0.0;
  for (const double square : gram.squares()) mean += square / static_cast<double>(in);
  for (int64_t i = 0; i < in; ++i) {
    double& element = matrix[static_cast<size_t>(i * in + i)];
    if (element > 0.0) element += part_of_mean * mean + part_of_each * element;
  }
  return InputGram::of_matrix(in, matrix, gram.rows());
}

// Given damping is a part of the mean of the diagonal, in which dead inputs count as zeros;
// automatic damping is a part of each of its elements.
TEST(AutomaticDamping, ChangesNothingOfDampingThatIsGiven) {
  for (const auto& [out, in] : kShapes) {
    const Tensor weight = random_tensor({out, in}, "w");
    const InputGram gram =
        HalfSeenInputs(2 * in, in, dependent_inputs(2 * in + 1000, in), 1.0f).seen;
    const int64_t keep = weight.numel() * 2 / 5;
    OneShotOptions options = OneShotOptions::defaults(OneShotMethod::SparseGpt);
    OneShotOptions without = options;
    without.damping = 0.0;
    for (const double damping : {0.01, 0.1, OneShotOptions::kAutomaticDamping}) {
      const bool is_given = damping != OneShotOptions::kAutomaticDamping;
      options.damping = damping;
      const PrunedWeight found = prune(weight, gram, keep, options);
      const PrunedWeight expected = prune(
          weight,
          is_given ? with_more(gram, damping, 0.0) : with_more(gram, 0.0, automatic_damping(gram)),
          keep, without);
      EXPECT_THAT(expected.messages, testing::IsEmpty());
      EXPECT_EQ(found.mask, expected.mask) << damping;
      for (int64_t i = 0; i < weight.numel(); ++i) {
        ASSERT_NEAR(found.weight.data()[i], expected.weight.data()[i], 1e-4) << damping;
      }
    }
  }
}

TEST(AutomaticDamping, IsTheShrinkageOfCorrelations) {
  // Two inputs that are one, of 8 rows: their shrinkage is 2 / 8, whatever their sizes, and dead
  // inputs beside them are not there.
  const double expected = 0.25 / 0.75;
  EXPECT_NEAR(automatic_damping(InputGram::of_matrix(2, std::vector<double>{4, 6, 6, 9}, 8)),
              expected, 1e-12);
  EXPECT_NEAR(automatic_damping(
                  InputGram::of_matrix(3, std::vector<double>{4, 0, 600, 0, 0, 0, 600, 0, 9e4}, 8)),
              expected, 1e-12);
  // Inputs that have nothing to do with each other: half of everything, as for a single one.
  EXPECT_NEAR(automatic_damping(InputGram::of_matrix(2, std::vector<double>{4, 0, 0, 9}, 8)), 1.0,
              1e-12);
  EXPECT_NEAR(automatic_damping(InputGram::of_matrix(1, std::vector<double>{4}, 8)), 1.0, 1e-12);
  EXPECT_NEAR(automatic_damping(InputGram::of_matrix(1, std::vector<double>{0}, 8)), 0.0, 1e-12);
}

TEST(AutomaticDamping, FallsWithRowsAndDoesNotDependOnThreads) {
  const int64_t in = 100;
  double before = 1.1;
  for (const int64_t rows : {40, 160, 640}) {
    const InputGram gram = dependent_gram(rows, in);
    const auto found = on_several_threads([&] { return automatic_damping(gram); });
    EXPECT_EQ(found[0], found[1]);
    EXPECT_EQ(found[0], found[2]);
    EXPECT_LT(found[0], before);
    EXPECT_GT(found[0], 0.0);
    before = found[0];
  }
  // Eight rows for each input are as good as more.
  const InputGram gram = dependent_gram(500, in);
  const auto with_rows = [&](int64_t rows) {
    return automatic_damping(InputGram::of_matrix(in, gram.matrix(), rows));
  };
  EXPECT_GT(with_rows(790), with_rows(800));
  EXPECT_EQ(with_rows(800), with_rows(8000));
}

// Of admm's matrix every element is 1 but for those of dead inputs.
TEST(AutomaticDamping, GoesWithAdmm) {
  const int64_t in = 42, live = 36;
  const Tensor weight = random_tensor({16, in}, "w");
  const InputGram gram = HalfSeenInputs(100, in, dependent_inputs(1100, in), 1.0f).seen;
  OneShotOptions options = OneShotOptions::defaults(OneShotMethod::Admm);
  options.damping = automatic_damping(gram) * in / live;
  const PrunedWeight expected = prune(weight, gram, 300, options);
  options.damping = OneShotOptions::kAutomaticDamping;
  const PrunedWeight found = prune(weight, gram, 300, options);
  EXPECT_THAT(found.messages, testing::IsEmpty());
  EXPECT_EQ(found.mask, expected.mask);
  for (int64_t i = 0; i < weight.numel(); ++i) {
    ASSERT_NEAR(found.weight.data()[i], expected.weight.data()[i], 1e-4);
  }
}

}  // namespace
}  // namespace lacuna::automatic_damping_test
