// N:M matrices from masks whose groups are all full: tables convert the bits of a row in a tile to
// its codes.
#include <algorithm>
#include <array>
#include <atomic>
#include <cstring>
#include <span>

#include "lacuna/framework/core/parallel.h"
#include "lacuna/framework/kernels/instruction_set.hpp"
#include "lacuna/framework/kernels/nm/nm.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "lacuna/framework/kernels/nm/nm_from_mask.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "lacuna/framework/kernels/nm/nm_codes.inc"

HWY_BEFORE_NAMESPACE();
namespace lacuna::HWY_NAMESPACE {
namespace {

#if HWY_TARGET == HWY_SCALAR
bool codes_of_bits(int, int, const uint8_t*, uint8_t*) { return false; }
#else
// Codes of kPart bits.
bool codes_of_bits(int n, int m, const uint8_t* bits, uint8_t* codes) {
  return with_format(
      n, m, [&]<int kN, int kM>(Format<kN, kM>) HWY_ATTR { codes_of_part<kN, kM>(bits, codes); });
}
#endif

}  // namespace
}  // namespace lacuna::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace lacuna {
namespace {

HWY_EXPORT(codes_of_bits);

// The largest number of bits of a row in a tile.
using Part = std::array<uint64_t, 2>;

// The bits [first, first + count) of the words, followed by zeros.
Part part_of(std::span<const uint64_t> words, int64_t first, int64_t count) {
  const auto word = static_cast<size_t>(first / 64);
  const int64_t shift = first % 64;
  const auto at = [&](size_t w) { return w < words.size() ? words[w] : 0; };
  Part part = {at(word), at(word + 1)};
  if (shift != 0) {
    part = {part[0] >> shift | part[1] << (64 - shift), part[1] >> shift | at(word + 2)
                                                                               << (64 - shift)};
  }
  if (count < 64) {
    part = {part[0] & ((uint64_t{1} << count) - 1), 0};
  } else if (count < 128) {
    part[1] &= (uint64_t{1} << (count - 64)) - 1;
  }
  return part;
}

// Whether each group of m = 4, 8 or 16 of the first `count` bits has n: counts of neighbours are
// added within the word.
bool is_full(const Part& part, int64_t count, int n, int m) {
  const uint64_t ones = m == 4   ? 0x1111111111111111u
                        : m == 8 ? 0x0101010101010101u
                                 : 0x0001000100010001u;
  for (int64_t i = 0; i < 2; ++i) {
    const int64_t here = std::min(count - 64 * i, int64_t{64});
    if (here <= 0) return true;
    uint64_t sums = part[static_cast<size_t>(i)];
    sums -= sums >> 1 & 0x5555555555555555u;
    sums = (sums & 0x3333333333333333u) + (sums >> 2 & 0x3333333333333333u);
    if (m >= 8) sums = (sums + (sums >> 4)) & 0x0f0f0f0f0f0f0f0fu;
    if (m == 16) sums = (sums + (sums >> 8)) & 0x00ff00ff00ff00ffu;
    const uint64_t all = here == 64 ? ~uint64_t{0} : (uint64_t{1} << here) - 1;
    if (sums != (ones * static_cast<uint64_t>(n) & all)) return false;
  }
  return true;
}

}  // namespace

std::optional<NmMatrix> nm_matrix_of_full(const NmMatrixForm& form, const BitMask& mask) {
  const bool has_code = (form.m() == 4 || form.m() == 8 || form.m() == 16) &&
                        (form.n() == 1 || form.n() == 2 || (form.n() == 4 && form.m() > 4));
  if (!has_code || form.columns % form.m() != 0 || use_reference_kernels()) return std::nullopt;
  const auto run = HWY_DYNAMIC_DISPATCH(codes_of_bits);
  NmMatrix matrix{.form = form};
  matrix.codes.resize(static_cast<size_t>(form.code_bytes()) + 8);
  std::vector<NmTile> tiles;
  for (int64_t t = 0; t < form.tiles(); ++t) tiles.push_back(form.tile(t));
  std::atomic<bool> is_whole = true;
  parallel_for(form.rows, form.rows_of_block(), [&](int64_t begin, int64_t end) {
    std::array<uint8_t, NmMatrixForm::kMostTileColumns> codes;
    for (int64_t row = begin; row < end && is_whole; ++row) {
      for (const NmTile& tile : tiles) {
        const Part part =
            part_of(mask.words(), row * form.columns + tile.first_column, tile.columns);
        uint8_t bits[sizeof part + 8] = {};
        std::memcpy(bits, part.data(), sizeof part);
        if (!is_full(part, tile.columns, form.n(), form.m()) ||
            !run(form.n(), form.m(), bits, codes.data())) {
          is_whole = false;
          return;
        }
        // Groups after the tile's columns have no bits, so their codes are zero.
        std::memcpy(matrix.codes.data() + tile.first_code + row * tile.code_bytes, codes.data(),
                    static_cast<size_t>(tile.code_bytes));
      }
    }
  });
  if (!is_whole) return std::nullopt;
  return matrix;
}

bool nm_columns_fit(const NmMatrixForm& form, const BitMask& mask) {
  for (int64_t row = 0; row + 4 <= form.rows; row += 4) {
    for (int64_t c = 0; c < form.columns; c += 128) {
      const int64_t count = std::min(form.columns - c, int64_t{128});
      const auto part = [&](int64_t r) {
        return part_of(mask.words(), (row + r) * form.columns + c, count);
      };
      const Part a = part(0), b = part(1), d = part(2), e = part(3);
      for (size_t w = 0; w < a.size(); ++w) {
        const uint64_t upper = a[w] & b[w], lower = d[w] & e[w];
        if (((upper & (d[w] | e[w])) | (lower & (a[w] | b[w]))) != 0) return false;
      }
    }
  }
  return true;
}

}  // namespace lacuna
#endif  // HWY_ONCE
