#include "lacuna/framework/program/output/confusion_matrix.hpp"

#include <gtest/gtest.h>

namespace lacuna {
namespace {

TEST(ConfusionMatrix, CountsPredictionsOfEachClass) {
  ConfusionMatrix matrix(3);
  matrix.add(IndexTensor(Shape{4}, {0, 0, 2, 1}), {0, 1, 2, 1});
  matrix.add(IndexTensor(Shape{1}, {0}), {1});
  EXPECT_EQ(matrix.count(0, 1), 2);
  EXPECT_EQ(matrix.to_config().to_json(), "[[1, 2, 0], [0, 1, 0], [0, 0, 1]]");
}

}  // namespace
}  // namespace lacuna
