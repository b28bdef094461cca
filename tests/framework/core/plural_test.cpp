#include "lacuna/framework/core/plural.hpp"

#include <gtest/gtest.h>

#include <limits>

namespace lacuna::plural_test {
namespace {

TEST(Plural, OnlyOneIsSingular) {
  EXPECT_EQ(plural(1, "step"), "1 step");
  EXPECT_EQ(plural(0, "step"), "0 steps");
  EXPECT_EQ(plural(2, "step"), "2 steps");
  EXPECT_EQ(plural(-1, "step"), "-1 steps");
  EXPECT_EQ(plural(std::numeric_limits<int64_t>::max(), "step"), "9223372036854775807 steps");
}

TEST(Plural, TakesAPluralWithoutAnS) {
  EXPECT_EQ(plural(1, "class", "classes"), "1 class");
  EXPECT_EQ(plural(3, "class", "classes"), "3 classes");
}

}  // namespace
}  // namespace lacuna::plural_test
