#include "lacuna/framework/layouts/density_limits.h"

#include <gtest/gtest.h>

namespace lacuna::density_limits_test {
namespace {

TEST(DensityLimitKey, ItsTextLeadsBackToIt) {
  const auto expect_text = [](const DensityLimitKey& key, const std::string& text) {
    EXPECT_EQ(key.to_string(), text);
    EXPECT_EQ(DensityLimitKey::parse(text), key) << text;
  };
  expect_text({"fc1.weight"}, "fc1.weight");
  expect_text({"fc1.weight", "nm 2:4"}, "fc1.weight in nm 2:4");
  expect_text({"fc1.weight", "csr", PatternLifetime::OneStep}, "fc1.weight in csr, for one step");
  expect_text({"fc1.weight", "nm 2:4 transposable", PatternLifetime::OneStep},
              "fc1.weight in nm 2:4 transposable, for one step");
}

}  // namespace
}  // namespace lacuna::density_limits_test
