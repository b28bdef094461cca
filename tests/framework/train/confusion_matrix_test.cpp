#include "lacuna/framework/train/confusion_matrix.hpp"

#include <gtest/gtest.h>

namespace lacuna::confusion_matrix_test {
namespace {

TEST(ConfusionMatrix, CountsPredictionsOfEachClass) {
  ConfusionMatrix matrix(3);
  matrix.add(IndexTensor(Shape{4}, {0, 0, 2, 1}), {0, 1, 2, 1});
  matrix.add(IndexTensor(Shape{1}, {0}), {1});
  EXPECT_EQ(matrix.count(0, 1), 2);
  EXPECT_EQ(matrix.to_config().to_json(), "[[1, 2, 0], [0, 1, 0], [0, 0, 1]]");
}

// What the processes of a job have counted.
TEST(ConfusionMatrix, AddsTheNumbersOfOthers) {
  ConfusionMatrix one(2), other(2);
  one.add(IndexTensor(Shape{2}, {0, 1}), {0, 0});
  other.add(IndexTensor(Shape{1}, {1}), {0});
  one.add(other.numbers());
  EXPECT_EQ(one.to_config().to_json(), "[[1, 0], [2, 0]]");
}

}  // namespace
}  // namespace lacuna::confusion_matrix_test
