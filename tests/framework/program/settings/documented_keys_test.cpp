#include "lacuna/framework/program/settings/documented_keys.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

namespace lacuna::documented_keys_test {
namespace {

using testing::ElementsAre;

TEST(DocumentedKeys, AreTheRowsOfTablesOfKeys) {
  const std::vector<DocumentedKey> keys = documented_keys(
      "| type | keys |\n|---|---|\n| `other` | |\n\n"
      "| key | type | default | example | meaning |\n|---|---|---|---|---|\n"
      "| `a.b` | name | `auto` | `csr` | storage: `auto` or `csr`, see [layouts](#layouts) |\n"
      "| `a.c` | true or false | `false` | `true` | [list] of `x` |\n"
      "text\n| `d` | | | | |\n");
  ASSERT_EQ(keys.size(), 2u);
  EXPECT_EQ(keys[0].path, "a.b");
  EXPECT_EQ(keys[0].about, "storage: auto or csr, see layouts");
  EXPECT_THAT(keys[0].choices, ElementsAre("auto", "csr"));
  EXPECT_THAT(keys[1].choices, ElementsAre("true", "false"));
}

TEST(DocumentedKeys, OfTheProgramAreTheReference) {
  const std::vector<DocumentedKey> keys = documented_keys(config_reference());
  EXPECT_GT(keys.size(), 130u);
  for (const char* path : {"data.type", "optimizer.lr", "train.epochs", "sparsity.update.freq"}) {
    EXPECT_EQ(std::ranges::count(keys, path, &DocumentedKey::path), 1) << path;
  }
  const auto layout = std::ranges::find(keys, "sparsity.layout", &DocumentedKey::path);
  EXPECT_THAT(layout->choices, testing::IsSupersetOf({"auto", "csr", "masked", "dense"}));
}

}  // namespace
}  // namespace lacuna::documented_keys_test
