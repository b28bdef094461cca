#include "lacuna/framework/layouts/batch_sums.hpp"

#include <gtest/gtest.h>

namespace lacuna::batch_sums_test {
namespace {

TEST(BatchSumsTest, OneClaimIsMetForThatTensorAlone) {
  const Tensor dy = Tensor::zeros({4, 3}), other = Tensor::zeros({4, 3});
  EXPECT_EQ(BatchSums::claim(dy), nullptr);
  const BatchSums sums(dy, 3);
  EXPECT_FALSE(sums.made().defined());
  EXPECT_EQ(BatchSums::claim(other), nullptr);
  float* into = BatchSums::claim(dy);
  ASSERT_NE(into, nullptr);
  into[0] = into[1] = into[2] = 7.0f;
  EXPECT_EQ(BatchSums::claim(dy), nullptr);  // they are made
  EXPECT_EQ(sums.made().to_vector(), (std::vector<float>{7, 7, 7}));
}

TEST(BatchSumsTest, WhoAsksForNothingHidesWhoAskedBefore) {
  const Tensor dy = Tensor::zeros({4, 3});
  const BatchSums outer(dy, 3);
  {
    const BatchSums nothing(Tensor(), 3);
    EXPECT_EQ(BatchSums::claim(dy), nullptr);
  }
  EXPECT_NE(BatchSums::claim(dy), nullptr);
}

}  // namespace
}  // namespace lacuna::batch_sums_test
