// Damaged npz and npy files are refused or read, and never crash nor take memory that their size
// does not explain.
#include <gtest/gtest.h>

#include <cstring>
#include <string>

#include "framework/io/storage/npz_bytes.h"
#include "lacuna/framework/core/error.h"
#include "lacuna/framework/core/random.h"
#include "lacuna/framework/io/storage/array_file.h"
#include "temporary_folder.h"

namespace lacuna {
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

// Whether the file was found good, with all that is in it. Arrays are no larger than what the
// smallest deflated form of them takes.
bool survives(const std::string& path, size_t size) {
  try {
    const auto file = open_array_file(path);
    for (size_t i = 0; i < file->arrays().size(); ++i) {
      const ArrayEntry& entry = file->arrays()[i];
      const auto bytes = static_cast<size_t>(entry.shape.numel()) * element_bytes(entry.type);
      EXPECT_LE(bytes, size * 1032 + 1032 * 1024);
      if (is_float(entry.type)) {
        EXPECT_EQ(file->read(i).shape(), entry.shape);
      } else {
        EXPECT_EQ(file->read_mask(i).shape, entry.shape);
      }
    }
    return true;
  } catch (const DataError&) {
    return false;
  }
}

TEST(NpzFuzz, EveryTruncationIsRefused) {
  const TemporaryFolder folder;
  const std::string good = good_file();
  ASSERT_TRUE(survives(folder.write("good.npz", good), good.size()));
  for (size_t size = 0; size < good.size(); ++size) {
    EXPECT_FALSE(survives(folder.write("cut.npz", good.substr(0, size)), size)) << size;
  }
}

// Some bits mean nothing here (dates, versions), but none that changes may change values.
TEST(NpzFuzz, EveryBitMayFlip) {
  const TemporaryFolder folder;
  const std::string good = good_file();
  int refused = 0, flipped = 0;
  for (size_t byte = 0; byte < good.size(); ++byte) {
    for (int bit = 0; bit < 8; bit += 1 + static_cast<int>(byte % 3)) {
      std::string bad = good;
      bad[byte] = static_cast<char>(bad[byte] ^ (1 << bit));
      refused += survives(folder.write("flipped.npz", bad), bad.size()) ? 0 : 1;
      ++flipped;
    }
  }
  EXPECT_GT(refused, flipped / 2);
}

TEST(NpzFuzz, ManyBytesMayChangeAtOnce) {
  const TemporaryFolder folder;
  const std::string good = good_file();
  const std::string_view likely("PK\1\2\3\4\5\6\0\xff{}(),'<f4\x40\x80", 22);
  const CounterRng rng(11, "npz_fuzz");
  uint64_t draw = 0;
  const auto below = [&](size_t bound) { return static_cast<size_t>(rng.bits(draw++) % bound); };
  for (int round = 0; round < 2000; ++round) {
    std::string bad = good;
    for (size_t change = 0; change <= below(5); ++change) {
      const size_t at = below(bad.size());
      switch (below(4)) {
        case 0:
          bad[at] = likely[below(likely.size())];
          break;
        case 1:
          bad.erase(at, 1 + below(20));
          break;
        case 2:
          bad.insert(at, bad.substr(below(bad.size()), below(60)));
          break;
        default:  // a number that is huge, or all ones
          for (size_t i = at; i < std::min(bad.size(), at + 4); ++i) bad[i] = '\xff';
      }
      if (bad.empty()) bad = "x";
    }
    survives(folder.write("changed.npz", bad), bad.size());
  }
}

TEST(NpzFuzz, ANpyFileMayBeAnything) {
  const TemporaryFolder folder;
  const std::string good = npy_bytes("<f2", "(2, 3)", std::string(12, '\x42'));
  ASSERT_TRUE(survives(folder.write("good.npy", good), good.size()));
  for (size_t size = 0; size < good.size(); ++size) {
    EXPECT_FALSE(survives(folder.write("cut.npy", good.substr(0, size)), size)) << size;
  }
  for (size_t byte = 0; byte < good.size(); ++byte) {
    for (int bit = 0; bit < 8; ++bit) {
      std::string bad = good;
      bad[byte] = static_cast<char>(bad[byte] ^ (1 << bit));
      survives(folder.write("flipped.npy", bad), bad.size());
    }
  }
}

}  // namespace
}  // namespace lacuna
