#include "lacuna/framework/core/input_checks.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <string>

#include "temporary_folder.h"

namespace lacuna {
namespace {

TEST(InputChecks, KnowsUtf8) {
  for (const char* good : {"", "plain", "gr\xC3\xBC\xC3\x9F", "\xF0\x9F\x99\x82", "\x7F"}) {
    EXPECT_TRUE(is_utf8(good)) << good;
  }
  for (const char* bad :
       {"\xFF", "a\xC3", "\xC0\x80", "\xED\xA0\x80", "\xF4\x90\x80\x80", "\x80"}) {
    EXPECT_FALSE(is_utf8(bad));
  }
  EXPECT_EQ(utf8_bytes("ab\xFFz"), 2u);
}

TEST(InputChecks, ShowsWhatCannotStandInAMessage) {
  EXPECT_EQ(printable(std::string_view("a\0b\n\xFF", 5)), "a\\x00b\\x0a\\xff");
  EXPECT_EQ(printable("gr\xC3\xBC\xC3\x9F"), "gr\xC3\xBC\xC3\x9F");
  EXPECT_EQ(printable("abcdef", 4), "abcd…");
  EXPECT_EQ(printable("abc\xC3\xBC", 4), "abc…");  // no half of a character
}

TEST(InputChecks, TellsPipesAndDevicesFromFiles) {
  const TemporaryFolder folder;
  ASSERT_EQ(mkfifo((folder / "pipe").c_str(), 0600), 0);
  write_text(folder / "file", "x");
  EXPECT_EQ(why_no_file(folder / "pipe"), "is a pipe, not a file");
  EXPECT_EQ(why_no_file("/dev/zero"), "is a device, not a file");
  EXPECT_EQ(why_no_file(folder / "file"), "");
  EXPECT_EQ(why_no_file(folder / "nothing"), "");
  EXPECT_EQ(why_no_file(folder.path()), "");
}

TEST(InputChecks, KnowsTheMemoryThatIsLeft) {
  EXPECT_GT(available_memory(), 0);
  EXPECT_GE(total_memory(), available_memory());
  EXPECT_EQ(bytes_in_words(0), "0 bytes");
  EXPECT_EQ(bytes_in_words(999), "999 bytes");
  EXPECT_EQ(bytes_in_words(13'400), "13 kB");
  EXPECT_EQ(bytes_in_words(2'100'000'000), "2.1 GB");
}

}  // namespace
}  // namespace lacuna
