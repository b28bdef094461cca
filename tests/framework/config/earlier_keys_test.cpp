#include "lacuna/framework/config/earlier_keys.hpp"

#include <gtest/gtest.h>

#include "lacuna/framework/io/yaml.h"
#include "throws.h"

namespace lacuna::earlier_keys_test {
namespace {

TEST(EarlierKeys, AreRenamedInTheirPlace) {
  const Config config = parse_yaml("a: 1\nsparsify: [{tensor: x}]\nb: 2\n", "c.yaml");
  rename_earlier_keys(config);
  EXPECT_EQ(config.to_yaml(), parse_yaml("a: 1\nsparsifiers: [{tensor: x}]\nb: 2\n", "").to_yaml());
  EXPECT_EQ(config.peek("sparsifiers.0.tensor").where(), "c.yaml:2:21: sparsifiers.0.tensor");
  rename_earlier_keys(config);  // changes nothing more
  EXPECT_EQ(config.children().size(), 3u);
  rename_earlier_keys(Config("a text"));
}

TEST(EarlierKeys, AreRefusedBesideTheirNewName) {
  const Config both = parse_yaml("sparsify: []\nsparsifiers: []\n", "c.yaml");
  expect_throws<ConfigError>([&] { rename_earlier_keys(both); },
                             "c.yaml:1:11: sparsify: `sparsify` and `sparsifiers` mean the same");
}

TEST(EarlierKeys, AreRenamedInAssignments) {
  EXPECT_EQ(renamed_assignment("sparsify.0.layout=csr"), "sparsifiers.0.layout=csr");
  EXPECT_EQ(renamed_assignment("sparsify=[]"), "sparsifiers=[]");
  for (const char* other : {"sparsifiers=[]", "sparsity=0.5", "sparsifyx=1", "data.sparsify=1"}) {
    EXPECT_EQ(renamed_assignment(other), other);
  }
}

}  // namespace
}  // namespace lacuna::earlier_keys_test
