// Damaged safetensors files are refused or read, and never crash nor take memory that their size
// does not explain.
#include <gtest/gtest.h>

#include <cstring>
#include <string>

#include "framework/io/storage/safetensors_bytes.h"
#include "lacuna/framework/core/error.h"
#include "lacuna/framework/core/random.h"
#include "lacuna/framework/io/storage/safetensors_file.h"
#include "temporary_folder.h"

namespace lacuna {
namespace {

std::string good_file() {
  const std::string header = "{\"__metadata__\":{\"format\":\"pt\"}," +
                             safetensors_entry("fc.weight", "F32", "[2,3]", "[0,24]") + "," +
                             safetensors_entry("fc.bias", "F16", "[2]", "[24,28]") + "," +
                             safetensors_entry("empty", "F64", "[0]", "[28,28]") + "," +
                             safetensors_entry("count", "I64", "[]", "[28,36]") + "}";
  return safetensors_bytes(header, std::string(36, '\x42'));
}

// Whether the file was found good; then every tensor in it is read.
bool survives(const std::string& path, size_t size) {
  try {
    const SafetensorsFile file(path);
    for (const SafetensorsEntry& entry : file.tensors()) {
      EXPECT_LE(entry.begin + entry.bytes, static_cast<int64_t>(size));
      if (!entry.is_float()) continue;
      EXPECT_EQ(file.read(entry).shape(), entry.shape);
    }
    return true;
  } catch (const DataError&) {
    return false;
  }
}

TEST(SafetensorsFuzz, EveryTruncationIsRefused) {
  const TemporaryFolder folder;
  const std::string good = good_file();
  ASSERT_TRUE(survives(folder.write("good", good), good.size()));
  for (size_t size = 0; size < good.size(); ++size) {
    EXPECT_FALSE(survives(folder.write("cut", good.substr(0, size)), size)) << size;
  }
  EXPECT_FALSE(survives(folder.write("longer", good + "x"), good.size() + 1));
}

TEST(SafetensorsFuzz, EveryBitOfTheHeaderMayFlip) {
  const TemporaryFolder folder;
  const std::string good = good_file();
  int refused = 0;
  for (size_t byte = 0; byte < good.size() - 36; ++byte) {
    for (int bit = 0; bit < 8; ++bit) {
      std::string bad = good;
      bad[byte] = static_cast<char>(bad[byte] ^ (1 << bit));
      refused += survives(folder.write("flipped", bad), bad.size()) ? 0 : 1;
    }
  }
  EXPECT_GT(refused, 1000);  // the others change a letter of a name
}

TEST(SafetensorsFuzz, ManyBytesMayChangeAtOnce) {
  const TemporaryFolder folder;
  const std::string good = good_file();
  const std::string_view likely = "{}[]\",:0123456789-eE. \xff";
  const CounterRng rng(7, "fuzz");
  uint64_t draw = 0;
  const auto below = [&](size_t bound) { return static_cast<size_t>(rng.bits(draw++) % bound); };
  for (int round = 0; round < 3000; ++round) {
    std::string bad = good;
    for (size_t change = 0; change <= below(4); ++change) {
      const size_t at = below(bad.size() - 36);
      switch (below(3)) {
        case 0:
          bad[at] = likely[below(likely.size())];
          break;
        case 1:
          bad.erase(at, 1 + below(20));
          break;
        default:
          bad.insert(at, bad.substr(below(bad.size()), below(40)));
      }
    }
    const uint64_t length = bad.size() < 44 ? 0 : bad.size() - 44;
    if (below(2) == 0) std::memcpy(bad.data(), &length, sizeof length);  // so that JSON is reached
    survives(folder.write("changed", bad), bad.size());
  }
}

}  // namespace
}  // namespace lacuna
