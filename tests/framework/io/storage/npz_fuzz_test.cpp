// Damaged npz and npy files are refused or read, and never crash nor take memory that their size
// does not explain.
#include <gtest/gtest.h>

#include <string>

#include "framework/io/storage/damaged_files.h"
#include "framework/io/storage/npz_bytes.h"

namespace lacuna::npz_fuzz_test {
namespace {

std::string good_file() {
  const std::string matrix = npy_bytes("<f4", "(2, 3)", std::string(24, '\x42'));
  return zip_bytes({{.name = "a.npy", .bytes = matrix},
                    {.name = "b.npy", .bytes = matrix, .deflate = true},
                    {.name = "c.npy", .bytes = matrix, .zip64_header = true},
                    {.name = "d.npy",
                     .bytes = npy_bytes("<f8", "(3,)", std::string(24, '\0')),
                     .deflate = true,
                     .sizes_behind = true},
                    {.name = "e_mask.npy", .bytes = npy_bytes("|b1", "(4,)", "\1\1\1\1")}});
}

DamagedFiles npz_files() {
  // No larger than what the smallest deflated form of an array takes.
  return {".npz", good_file(), [](size_t size) { return size * 1032 + 1032 * 1024; }};
}

TEST(NpzFuzz, EveryTruncationIsRefused) { npz_files().expect_truncations_refused(); }

// Some bits mean nothing here (dates, versions), but none that changes may change values.
TEST(NpzFuzz, EveryBitMayFlip) {
  const auto size = good_file().size();
  EXPECT_GT(npz_files().refused_flips(0, size), static_cast<int>(size) * 8 / 2);
}

TEST(NpzFuzz, ManyBytesMayChangeAtOnce) {
  npz_files().change_many(3000, std::string_view("PK\1\2\3\4\5\6\0\xff{}(),'<f4\x40\x80", 22));
}

TEST(NpzFuzz, ANpyFileMayBeAnything) {
  const std::string good = npy_bytes("<f2", "(2, 3)", std::string(12, '\x42'));
  const DamagedFiles files(".npy", good, [](size_t size) { return size; });
  files.expect_truncations_refused();
  EXPECT_GT(files.refused_flips(0, good.size() - 12), 100);
  EXPECT_EQ(files.refused_flips(good.size() - 12, good.size()), 0);  // values of another size
  files.change_many(1000, "{}(),'<>|fibu1248 \n\x93");
}

}  // namespace
}  // namespace lacuna::npz_fuzz_test
