// What the table of other frameworks' words calls ours is ours: docs/reference/config.md has it.
#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <sstream>

#include "docs/documents.h"
#include "lacuna/framework/config/familiar_names.hpp"
#include "lacuna/framework/program/settings/documented_keys.hpp"

namespace lacuna::familiar_table_test {
namespace {

std::set<std::string> words_of_page() {
  std::set<std::string> words;
  for (std::string line : documents::read_lines("docs/reference/config.md")) {
    std::ranges::replace_if(
        line, [](unsigned char c) { return !std::isalnum(c) && c != '_'; }, ' ');
    std::istringstream text(line);
    for (std::string word; text >> word;) words.insert(word);
  }
  return words;
}

TEST(FamiliarTable, LeadsToWhatIsDocumented) {
  const std::set<std::string> words = words_of_page();
  const std::vector<DocumentedKey> keys = documented_keys(config_reference());
  ASSERT_GT(familiar_names().size(), 150u);
  for (const FamiliarName& row : familiar_names()) {
    std::istringstream ours{std::string(row.ours)};
    for (std::string word; ours >> word;) EXPECT_TRUE(words.contains(word)) << word;
    const auto same = [&](const DocumentedKey& key) {
      return key.path == row.key || key.path.starts_with(std::string(row.key) + ".");
    };
    EXPECT_TRUE(row.key.empty() || std::ranges::any_of(keys, same)) << row.key;
    EXPECT_FALSE(row.theirs.empty()) << row.ours;
  }
}

}  // namespace
}  // namespace lacuna::familiar_table_test
