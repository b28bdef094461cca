#include "lacuna/framework/nn/named_inputs.h"

#include <gtest/gtest.h>

#include <thread>

namespace lacuna::named_inputs_test {
namespace {

TEST(NamedInputs, AreFoundInTheInnermostScopeOfTheThread) {
  EXPECT_EQ(named_input("attention_mask"), nullptr);
  const NamedTensors outer{{"attention_mask", IndexTensor({2}, {1, 0})}};
  const NamedTensors inner{{"token_type_ids", IndexTensor({1}, {7})}};
  {
    const NamedInputs scope(outer);
    ASSERT_NE(named_input("attention_mask"), nullptr);
    EXPECT_EQ(named_input("attention_mask")->values()[0], 1);
    EXPECT_EQ(named_input("token_type_ids"), nullptr);
    {
      const NamedInputs narrower(inner);
      EXPECT_EQ(named_input("attention_mask"), nullptr);
      EXPECT_EQ(named_input("token_type_ids")->values()[0], 7);
    }
    EXPECT_NE(named_input("attention_mask"), nullptr);
    const IndexTensor* found = &outer.begin()->second;
    std::thread([&] { found = named_input("attention_mask"); }).join();
    EXPECT_EQ(found, nullptr);
  }
  EXPECT_EQ(named_input("attention_mask"), nullptr);
}

}  // namespace
}  // namespace lacuna::named_inputs_test
