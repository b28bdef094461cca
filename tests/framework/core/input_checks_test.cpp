#include "lacuna/framework/core/input_checks.hpp"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>
#include <limits>
#include <string>

#include "temporary_folder.h"

namespace lacuna::input_checks_test {
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

// Files as the kernel has them, below a folder.
class MemoryGroups : public testing::Test {
 protected:
  void group(const std::string& path, const std::string& file, const std::string& text) {
    std::filesystem::create_directories(folder_ / path);
    write_text(folder_ / (path + "/" + file), text + "\n");
  }
  GroupMemory memory_of(const std::string& membership, int64_t swap = 0) {
    write_text(folder_ / "membership", membership);
    return memory_of_groups(folder_ / "membership", folder_ / "fs", swap);
  }

  const TemporaryFolder folder_;
};

TEST_F(MemoryGroups, OfVersion2AreThoseAroundIt) {
  group("fs/job", "memory.max", "5000");
  group("fs/job", "memory.current", "1500");
  group("fs/job/step", "memory.max", "max");
  group("fs/job/step", "memory.current", "900");
  const GroupMemory memory = memory_of("0::/job/step\n");
  EXPECT_EQ(memory.total, 5000);
  EXPECT_EQ(memory.left, 3500);
  group("fs/job/step", "memory.max", "1000");
  EXPECT_EQ(memory_of("0::/job/step\n").total, 1000);
  EXPECT_EQ(memory_of("0::/job/step\n").left, 100);
}

TEST_F(MemoryGroups, OfVersion1AreOfTheMemorysOwnTree) {
  group("fs/memory/job", "memory.limit_in_bytes", "5000");
  group("fs/memory/job", "memory.usage_in_bytes", "1500");
  group("fs/memory", "memory.limit_in_bytes", "9223372036854771712");  // none
  group("fs/memory", "memory.usage_in_bytes", "70000");
  const std::string membership = "3:pids:/other\n2:cpu,memory:/job\n1:name=systemd:/\n";
  EXPECT_EQ(memory_of(membership).total, 5000);
  EXPECT_EQ(memory_of(membership).left, 3500);
}

// Whose path may be that of the machine, which is not seen inside.
TEST_F(MemoryGroups, OfAContainerAreAtTheRoot) {
  group("fs", "memory.max", "5000");
  group("fs", "memory.current", "1500");
  group("fs/memory", "memory.limit_in_bytes", "4000");
  group("fs/memory", "memory.usage_in_bytes", "1500");
  EXPECT_EQ(memory_of("0::/\n").left, 3500);
  EXPECT_EQ(memory_of("0::/docker/0123\n").left, 3500);
  EXPECT_EQ(memory_of("9:memory:/docker/0123\n").left, 2500);
}

TEST_F(MemoryGroups, CachedFilesTakeNothing) {
  group("fs", "memory.max", "5000");
  group("fs", "memory.current", "4900");
  group("fs", "memory.stat", "anon 900\nfile 4000\ninactive_file 3500\nactive_file 500");
  EXPECT_EQ(memory_of("0::/\n").left, 4100);
  group("fs/memory", "memory.limit_in_bytes", "5000");
  group("fs/memory", "memory.usage_in_bytes", "4900");
  group("fs/memory", "memory.stat",
        "inactive_file 1\nactive_file 1\ntotal_inactive_file 3500\ntotal_active_file 500");
  EXPECT_EQ(memory_of("9:memory:/\n").left, 4100);
}

TEST_F(MemoryGroups, SwapIsAddedAsFarAsTheyMayTakeIt) {
  group("fs", "memory.max", "5000");
  EXPECT_EQ(memory_of("0::/\n", 800).total, 5800);
  group("fs", "memory.swap.max", "300");
  EXPECT_EQ(memory_of("0::/\n", 800).total, 5300);
  group("fs/memory", "memory.limit_in_bytes", "5000");
  EXPECT_EQ(memory_of("9:memory:/\n", 800).total, 5800);
  group("fs/memory", "memory.memsw.limit_in_bytes", "5100");
  EXPECT_EQ(memory_of("9:memory:/\n", 800).total, 5100);
}

TEST_F(MemoryGroups, SayNothingWhereThereAreNone) {
  constexpr int64_t kNothing = std::numeric_limits<int64_t>::max();
  for (const char* membership : {"", "0::/\n", "no group\n", "9:memory:/a/b\n", "1:a\n"}) {
    EXPECT_EQ(memory_of(membership).total, kNothing) << membership;
    EXPECT_EQ(memory_of(membership).left, kNothing) << membership;
  }
}

}  // namespace
}  // namespace lacuna::input_checks_test
