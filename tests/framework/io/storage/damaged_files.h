// Damaged forms of a good file of arrays: cut, with bits flipped, with many bytes changed. Each is
// refused by an error that names the file, or read whole, in no more memory than it may take.
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <string>
#include <string_view>
#include <utility>

#include "lacuna/framework/core/error.h"
#include "lacuna/framework/core/random.h"
#include "lacuna/framework/io/storage/array_file.hpp"
#include "temporary_folder.h"

namespace lacuna {

/// Draws changes, the same ones for the same name.
class Damage {
 public:
  explicit Damage(const std::string& name) : rng_(7, "damaged " + name) {}

  size_t below(size_t bound) { return static_cast<size_t>(rng_.bits(draw_++) % bound); }

  /// The bytes with up to five changes anywhere: bytes that the format means something by, parts
  /// taken out or said twice, and numbers that are huge.
  std::string of(std::string bytes, std::string_view likely) {
    for (size_t change = below(5) + 1; change > 0 && !bytes.empty(); --change) {
      const size_t at = below(bytes.size());
      switch (below(4)) {
        case 0:
          bytes[at] = likely[below(likely.size())];
          break;
        case 1:
          bytes.erase(at, 1 + below(20));
          break;
        case 2:
          bytes.insert(at, bytes.substr(below(bytes.size()), below(60)));
          break;
        default:
          std::fill(bytes.begin() + static_cast<ptrdiff_t>(at),
                    bytes.begin() + static_cast<ptrdiff_t>(std::min(bytes.size(), at + 4)), '\xff');
      }
    }
    return bytes;
  }

 private:
  CounterRng rng_;
  uint64_t draw_ = 0;
};

class DamagedFiles {
 public:
  /// `ending` tells the format; `most_bytes` is what an array in a file of so many bytes may have.
  /// The good file is read.
  DamagedFiles(std::string ending, std::string good, std::function<size_t(size_t)> most_bytes)
      : ending_(std::move(ending)), good_(std::move(good)), most_bytes_(std::move(most_bytes)) {
    EXPECT_TRUE(survives(good_)) << "the good file";
  }

  /// Whether the file was found good, with all that is in it.
  bool survives(const std::string& bytes) const {
    const std::string path = folder_.write("weights" + ending_, bytes);
    try {
      const auto file = open_array_file(path);
      for (size_t i = 0; i < file->arrays().size(); ++i) {
        const ArrayEntry& entry = file->arrays()[i];
        EXPECT_LE(static_cast<size_t>(entry.shape.numel()) * element_bytes(entry.type),
                  most_bytes_(bytes.size()));
        read(*file, i);
      }
      return true;
    } catch (const DataError& error) {
      EXPECT_THAT(error.what(), testing::HasSubstr(path));
      return false;
    }
  }

  void expect_truncations_refused() const {
    for (size_t size = 0; size < good_.size(); ++size) {
      EXPECT_FALSE(survives(good_.substr(0, size))) << size << " of " << good_.size() << " bytes";
    }
  }

  /// How many of the files are refused that differ from the good one in a bit of bytes begin … end.
  int refused_flips(size_t begin, size_t end) const {
    int refused = 0;
    for (size_t byte = begin; byte < end; ++byte) {
      for (int bit = 0; bit < 8; ++bit) {
        std::string bad = good_;
        bad[byte] = static_cast<char>(bad[byte] ^ (1 << bit));
        refused += survives(bad) ? 0 : 1;
      }
    }
    return refused;
  }

  /// Reads files with changes that `Damage` draws. `mend` is given half of them before.
  void change_many(int rounds, std::string_view likely,
                   const std::function<void(std::string&)>& mend = {}) const {
    Damage damage(ending_);
    for (int round = 0; round < rounds; ++round) {
      std::string bad = damage.of(good_, likely);
      if (mend && damage.below(2) == 0) mend(bad);
      survives(bad);
    }
  }

 private:
  static void read(const ArrayFile& file, size_t index) {
    const ArrayEntry& entry = file.arrays()[index];
    if (is_float(entry.type)) {
      EXPECT_EQ(file.read(index).shape(), entry.shape);
    } else {  // zeros and ones, and other integers
      try {
        EXPECT_EQ(file.read_mask(index).shape, entry.shape);
      } catch (const DataError&) {
        EXPECT_EQ(static_cast<int64_t>(file.read_integers(index).size()), entry.shape.numel());
      }
    }
  }

  TemporaryFolder folder_;
  std::string ending_, good_;
  std::function<size_t(size_t)> most_bytes_;
};

}  // namespace lacuna
