#include "lacuna/framework/config/integer_range.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <limits>
#include <string>

#include "lacuna/framework/core/error.h"
#include "throws.h"

namespace lacuna::integer_range_test {
namespace {

constexpr int64_t kLargest = std::numeric_limits<int64_t>::max();

TEST(IntegerRange, EveryIntegerHasAnUpperEnd) {
  const Config map = Config::map({{"block", kLargest}});
  expect_throws<ConfigError>([&] { require_at_least(map, "block", kLargest, 1); },
                             "block: expected an integer of at most 9007199254740992, found "
                             "'9223372036854775807'");
  EXPECT_EQ(require_at_least(map, "block", kMostInteger, 1), kMostInteger);
  EXPECT_THROW(require_at_least(map, "block", kMostInteger + 1, 1), ConfigError);
  EXPECT_THROW(require_at_least(map, "block", 0, 1), ConfigError);
}

TEST(IntegerRange, MessagesSayBothEnds) {
  const Config map = Config::map({{"index", -7}});
  EXPECT_EQ(require_integer(map, "index", -7, -7, 3), -7);
  expect_throws<ConfigError>([&] { require_integer(map, "index", -7, -6, 3); },
                             "index: expected an integer from -6 to 3, found '-7'");
}

TEST(IntegerRange, EverySeedOf63BitsIsOne) {
  EXPECT_EQ(read_seed(Config::map({{"seed", kLargest}})), static_cast<uint64_t>(kLargest));
  EXPECT_THROW(read_seed(Config::map({{"seed", -1}})), ConfigError);
  const Config without = Config::map({});
  EXPECT_EQ(read_seed(without), 0u);
  EXPECT_EQ(without.required<int64_t>("seed"), 0);
}

}  // namespace
}  // namespace lacuna::integer_range_test
