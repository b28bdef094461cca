#include "lacuna/framework/kernels/int8/int8_groups.hpp"

#include <fmt/core.h>

#include <climits>
#include <cstdlib>

#include "lacuna/framework/core/error.h"

namespace lacuna::internal {
namespace {

// A word with one of its four weights.
int32_t with_weight(int32_t word, uint32_t place, int8_t value) {
  const uint32_t byte = static_cast<uint8_t>(value);
  return static_cast<int32_t>(static_cast<uint32_t>(word) | (byte << (8 * place)));
}

// Weights 0 and 2 of a word; the others are 1 and 3.
constexpr uint32_t kEven = 0x00ff00ff;

}  // namespace

bool int8_word_fits_pairs(int32_t word) {
  const auto magnitude = [&](int byte) {
    return std::abs(
        static_cast<int>(static_cast<int8_t>(static_cast<uint32_t>(word) >> (8 * byte))));
  };
  constexpr int kMost = INT16_MAX / 255;
  return magnitude(0) + magnitude(1) <= kMost && magnitude(2) + magnitude(3) <= kMost;
}

Int8Groups int8_groups(int64_t rows, std::span<const int64_t> row_begin,
                       std::span<const uint32_t> column_of, std::span<const int8_t> values) {
  Int8Groups groups;
  groups.quad.reserve(column_of.size() / 2);
  groups.word.reserve(column_of.size() / 2);
  for (int64_t row = 0; row < rows; ++row) {
    const auto begin = static_cast<size_t>(row_begin[static_cast<size_t>(row)]);
    const auto end = static_cast<size_t>(row_begin[static_cast<size_t>(row) + 1]);
    for (size_t i = begin; i < end; ++i) {
      const uint32_t quad = column_of[i] / kInt8Group;
      if (i == begin || groups.quad.back() != quad) {
        groups.quad.push_back(quad);
        groups.word.push_back(0);
      }
      groups.word.back() = with_weight(groups.word.back(), column_of[i] % kInt8Group, values[i]);
    }
    groups.row_begin.push_back(static_cast<int64_t>(groups.quad.size()));
  }
  return groups;
}

Int8Groups int8_tap_groups(int64_t rows, int64_t taps, std::span<const int64_t> row_begin,
                           std::span<const uint32_t> column_of, std::span<const int8_t> values) {
  Int8Groups groups;
  const auto tap_count = static_cast<uint32_t>(taps);
  // For the current quad of channels, the place of each tap's group, from 1; 0: none.
  std::vector<size_t> group_of(tap_count);
  for (int64_t row = 0; row < rows; ++row) {
    const auto begin = static_cast<size_t>(row_begin[static_cast<size_t>(row)]);
    const auto end = static_cast<size_t>(row_begin[static_cast<size_t>(row) + 1]);
    uint32_t last = 0;
    for (size_t i = begin; i < end; ++i) {
      const uint32_t channel = column_of[i] / tap_count, tap = column_of[i] % tap_count;
      const uint32_t quad = channel / kInt8Group;
      if (i == begin || quad != last) group_of.assign(tap_count, 0);
      last = quad;
      if (group_of[tap] == 0) {
        groups.quad.push_back(quad * tap_count + tap);
        groups.word.push_back(0);
        group_of[tap] = groups.word.size();
      }
      int32_t& word = groups.word[group_of[tap] - 1];
      word = with_weight(word, channel % kInt8Group, values[i]);
    }
    groups.row_begin.push_back(static_cast<int64_t>(groups.quad.size()));
  }
  return groups;
}

Int8Groups split_int8_groups(const Int8Groups& groups) {
  Int8Groups split;
  for (size_t row = 0; row + 1 < groups.row_begin.size(); ++row) {
    for (auto i = static_cast<size_t>(groups.row_begin[row]);
         i < static_cast<size_t>(groups.row_begin[row + 1]); ++i) {
      const auto word = static_cast<uint32_t>(groups.word[i]);
      const bool fits = int8_word_fits_pairs(groups.word[i]);
      split.quad.push_back(groups.quad[i]);
      split.word.push_back(static_cast<int32_t>(fits ? word : word & kEven));
      if (fits) continue;
      split.quad.push_back(groups.quad[i]);
      split.word.push_back(static_cast<int32_t>(word & ~kEven));
    }
    split.row_begin.push_back(static_cast<int64_t>(split.quad.size()));
  }
  return split;
}

std::vector<int32_t> int8_row_sums(int64_t rows, std::span<const int64_t> row_begin,
                                   std::span<const int8_t> values) {
  constexpr int64_t kMost = INT32_MAX / 255;
  std::vector<int32_t> sums(static_cast<size_t>(rows));
  for (size_t row = 0; row < sums.size(); ++row) {
    int64_t sum = 0, magnitude = 0;
    for (int64_t i = row_begin[row]; i < row_begin[row + 1]; ++i) {
      sum += values[static_cast<size_t>(i)];
      magnitude += std::abs(values[static_cast<size_t>(i)]);
    }
    if (magnitude > kMost) {
      throw ShapeError(
          fmt::format("row {} of an int8 weight has {} nonzeros of magnitude {} together, whose "
                      "product with bytes does not fit 32 bits; {} do",
                      row, row_begin[row + 1] - row_begin[row], magnitude, kMost));
    }
    sums[row] = static_cast<int32_t>(sum);
  }
  return sums;
}

}  // namespace lacuna::internal
