#include "lacuna/framework/io/shell_word.hpp"

#include <gtest/gtest.h>

namespace lacuna::shell_word_test {
namespace {

TEST(ShellWord, IsQuotedOnlyWhereAShellWouldReadMoreIntoIt) {
  EXPECT_EQ(shell_word("runs/lr=0.1,seed=0/step-1.h5"), "runs/lr=0.1,seed=0/step-1.h5");
  EXPECT_EQ(shell_word(""), "''");
  EXPECT_EQ(shell_word("two words"), "'two words'");
  EXPECT_EQ(shell_word("$HOME;*"), "'$HOME;*'");
  EXPECT_EQ(shell_word("it's"), "'it'\\''s'");
  EXPECT_EQ(shell_word("l\xC3\xA4uf"), "'l\xC3\xA4uf'");
}

}  // namespace
}  // namespace lacuna::shell_word_test
