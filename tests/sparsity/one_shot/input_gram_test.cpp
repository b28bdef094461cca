#include "lacuna/sparsity/one_shot/input_gram.h"

#include <gtest/gtest.h>

#include <vector>

#include "lacuna/framework/core/error.h"
#include "sparsity/one_shot/layers.h"
#include "throws.h"

namespace lacuna::input_gram_test {
namespace {

TEST(InputGram, IsTheSumOfTheRowsProducts) {
  for (const auto& [rows, features] :
       {std::pair<int64_t, int64_t>{1, 1}, {3, 5}, {1030, 17}, {40, 530}}) {
    const std::vector<float> x = dependent_inputs(rows, features);
    const InputGram gram = gram_of(features, x);
    EXPECT_EQ(gram.rows(), rows);
    const std::vector<double> squares = gram.squares();
    for (int64_t i = 0; i < features; ++i) {
      for (int64_t j = 0; j < features; ++j) {
        double sum = 0.0, size = 0.0;
        for (int64_t r = 0; r < rows; ++r) {
          const double product = static_cast<double>(x[r * features + i]) * x[r * features + j];
          sum += product;
          size += std::abs(product);
        }
        // Sums of up to 1,024 products are in float32.
        ASSERT_NEAR(gram.matrix()[i * features + j], sum, 2e-6 * size) << i << ", " << j;
      }
      ASSERT_EQ(squares[i], gram.matrix()[i * features + i]);
    }
  }
}

TEST(InputGram, DependsNeitherOnHowRowsComeNorOnThreads) {
  const int64_t features = 530, rows = 1200;
  const std::vector<float> x = dependent_inputs(rows, features);
  const auto matrix_in_steps_of = [&](int64_t step) {
    InputGram gram(features);
    for (int64_t r = 0; r < rows; r += step) {
      const int64_t count = std::min(step, rows - r);
      gram.add(std::span(x).subspan(r * features, count * features));
    }
    return std::vector<double>(gram.matrix().begin(), gram.matrix().end());
  };
  const auto results = on_several_threads([&] { return matrix_in_steps_of(rows); });
  EXPECT_EQ(results[0], results[1]);
  EXPECT_EQ(results[0], results[2]);
  EXPECT_EQ(results[0], matrix_in_steps_of(1));
  EXPECT_EQ(results[0], matrix_in_steps_of(700));
}

TEST(InputGram, GoesOnAfterItWasLookedAt) {
  const std::vector<float> x = dependent_inputs(20, 3);
  InputGram gram(3);
  gram.add(std::span(x).first(30));
  const double before = gram.matrix()[1];
  gram.add(std::span(x).subspan(30));
  EXPECT_NE(gram.matrix()[1], before);
  EXPECT_EQ(gram.matrix()[1], gram.matrix()[3]);
  EXPECT_NEAR(gram.matrix()[1], gram_of(3, x).matrix()[1], 1e-4);
}

TEST(InputGram, TakesTheLowerTriangleOfAMatrix) {
  const InputGram gram = InputGram::of_matrix(2, std::vector<double>{1, 9, 3, 4}, 7);
  EXPECT_EQ(std::vector<double>(gram.matrix().begin(), gram.matrix().end()),
            (std::vector<double>{1, 3, 3, 4}));
  EXPECT_EQ(gram.rows(), 7);
}

TEST(InputGram, OfIndependentInputsIsTheIdentity) {
  InputGram gram = InputGram::of_independent(3);
  EXPECT_TRUE(gram.is_independent());
  EXPECT_EQ(gram.rows(), 1);
  EXPECT_EQ(gram.squares(), (std::vector<double>{1, 1, 1}));
  EXPECT_EQ(std::vector<double>(gram.matrix().begin(), gram.matrix().end()),
            (std::vector<double>{1, 0, 0, 0, 1, 0, 0, 0, 1}));
  EXPECT_TRUE(gram.is_independent());
  gram.add(std::vector<float>{1, 2, 0});
  EXPECT_FALSE(gram.is_independent());
  EXPECT_EQ(gram.squares(), (std::vector<double>{2, 5, 1}));
  EXPECT_EQ(gram.matrix()[1], 2.0);
  EXPECT_EQ(InputGram(2).matrix()[3], 0.0);
}

TEST(InputGram, RefusesWhatAreNoRows) {
  InputGram gram(3);
  expect_throws<ShapeError>([&] { gram.add(std::vector<float>(4)); },
                            "expected whole rows of 3 features, found 4 values");
  expect_throws<ShapeError>([] { InputGram(0).add(std::vector<float>(1)); },
                            "expected whole rows of 0 features, found 1 value");
  expect_throws<ShapeError>([] { InputGram::of_matrix(2, std::vector<double>(3)); },
                            "a Gram matrix of 2 features needs 4 values, found 3");
  expect_throws<ShapeError>([] { InputGram(-1); }, "must be at least 0, found -1");
  expect_throws<ShapeError>([] { InputGram::of_matrix(-1, {}); }, "must be at least 0, found -1");
}

}  // namespace
}  // namespace lacuna::input_gram_test
