// Damaged safetensors files are refused or read, and never crash nor take memory that their size
// does not explain.
#include <gtest/gtest.h>

#include <cstring>
#include <string>

#include "framework/io/storage/damaged_files.h"
#include "framework/io/storage/safetensors_bytes.h"

namespace lacuna::safetensors_fuzz_test {
namespace {

constexpr size_t kData = 44;  // bytes behind the header

std::string good_file() {
  const std::string header = "{\"__metadata__\":{\"format\":\"pt\"}," +
                             safetensors_entry("fc.weight", "F32", "[2,3]", "[0,24]") + "," +
                             safetensors_entry("fc.bias", "F16", "[2]", "[24,28]") + "," +
                             safetensors_entry("empty", "F64", "[0]", "[28,28]") + "," +
                             safetensors_entry("fc.scale", "BF16", "[4]", "[28,36]") + "," +
                             safetensors_entry("count", "I64", "[]", "[36,44]") + "}";
  return safetensors_bytes(header, std::string(kData, '\x42'));
}

DamagedFiles safetensors_files() {
  return {".safetensors", good_file(), [](size_t size) { return size; }};
}

TEST(SafetensorsFuzz, EveryTruncationIsRefused) {
  const DamagedFiles files = safetensors_files();
  files.expect_truncations_refused();
  EXPECT_FALSE(files.survives(good_file() + "x"));
}

TEST(SafetensorsFuzz, EveryBitOfTheHeaderMayFlip) {
  // The others change a letter of a name.
  EXPECT_GT(safetensors_files().refused_flips(0, good_file().size() - kData), 1000);
}

// The format has no checksum: whatever bits there are, are values.
TEST(SafetensorsFuzz, EveryBitOfTheDataMayFlip) {
  const size_t size = good_file().size();
  EXPECT_EQ(safetensors_files().refused_flips(size - kData, size), 0);
}

TEST(SafetensorsFuzz, ManyBytesMayChangeAtOnce) {
  safetensors_files().change_many(
      3000, "{}[]\",:0123456789-eE. \xff", [](std::string& bad) {  // so that JSON is reached
        const uint64_t length = bad.size() < 8 + kData ? 0 : bad.size() - 8 - kData;
        if (bad.size() >= sizeof length) std::memcpy(bad.data(), &length, sizeof length);
      });
}

}  // namespace
}  // namespace lacuna::safetensors_fuzz_test
