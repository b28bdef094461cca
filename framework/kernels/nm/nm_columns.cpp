#include "lacuna/framework/kernels/nm/nm_columns.hpp"

#include <algorithm>
#include <cstring>

#include "lacuna/framework/core/parallel.h"
#include "lacuna/framework/kernels/instruction_set.hpp"
#include "lacuna/framework/kernels/simd/processor.hpp"
#include "lacuna/framework/kernels/simd/slab.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "lacuna/framework/kernels/nm/nm_columns.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "lacuna/framework/kernels/simd/slab.inc"

HWY_BEFORE_NAMESPACE();
namespace lacuna::HWY_NAMESPACE {
namespace {

#if HWY_TARGET == HWY_AVX3 || HWY_TARGET == HWY_AVX3_DL

bool has_columns() { return true; }

// One tile of rows and one group of columns, in one slab.
struct GroupRun {
  const char* dy = nullptr;       // the tile's first row
  char* dx = nullptr;             // the group's first row
  const float* values = nullptr;  // two per row, in the order of `rows`
  const uint8_t* rows = nullptr;
  const uint8_t* counts = nullptr;
  bool is_first = false;  // the first tile: sums begin with zero
};

// Processes the rows that keep the pair (a, b).
template <int a, int b, int kVectors>
HWY_INLINE void add_pair(GroupRun& run, int64_t count, Vector (&sums)[4][kVectors]) {
  const Floats d;
  for (const uint8_t* end = run.rows + count; run.rows < end; ++run.rows, run.values += 2) {
    const char* dy = run.dy + *run.rows * kSlabRowBytes;
    const Vector first = hn::Set(d, run.values[0]), second = hn::Set(d, run.values[1]);
    for (int v = 0; v < kVectors; ++v) {
      Vector y = load(dy, v);
      keep_in_register(y);
      sums[a][v] = hn::MulAdd(first, y, sums[a][v]);
      sums[b][v] = hn::MulAdd(second, y, sums[b][v]);
    }
  }
}

template <int kVectors>
HWY_INLINE void group_of_columns(GroupRun run) {
  Vector sums[4][kVectors];
  for (int c = 0; c < 4; ++c) {
    for (int v = 0; v < kVectors; ++v) {
      sums[c][v] = run.is_first ? hn::Zero(Floats()) : load(run.dx + c * kSlabRowBytes, v);
    }
  }
  static_assert(NmColumns::kPairs.size() == 6);
  add_pair<0, 1>(run, run.counts[0], sums);
  add_pair<0, 2>(run, run.counts[1], sums);
  add_pair<0, 3>(run, run.counts[2], sums);
  add_pair<1, 2>(run, run.counts[3], sums);
  add_pair<1, 3>(run, run.counts[4], sums);
  add_pair<2, 3>(run, run.counts[5], sums);
  for (int c = 0; c < 4; ++c) {
    for (int v = 0; v < kVectors; ++v) store(sums[c][v], run.dx + c * kSlabRowBytes, v);
  }
}

// Groups [begin, end) over one slab of `width` examples, one pass of its columns at a time.
template <int kVectors>
void input_gradient_pass(const NmMatrixForm& form, const NmColumns& index, int64_t begin,
                         int64_t end, const float* values, const char* dy, char* dx) {
  const int64_t groups = form.columns / 4;
  for (int64_t t = 0; t < index.tiles; ++t) {
    const int64_t first_row = t * index.tile_rows;
    const int64_t rows = std::min(index.tile_rows, form.rows - first_row);
    for (int64_t g = begin; g < end; ++g) {
      const int64_t first = first_row * groups + g * rows;
      char* into = dx + g * 4 * kSlabRowBytes;
      for (int64_t line = 0; line < kVectors * kVectorBytes / 64 && t > 0; ++line) {
        for (int64_t c = 4; c < 8; ++c) {
          __builtin_prefetch(into + c * kSlabRowBytes + 64 * line, 1);
        }
      }
      group_of_columns<kVectors>({.dy = dy + first_row * kSlabRowBytes,
                                  .dx = into,
                                  .values = values + 2 * first,
                                  .rows = index.rows.data() + first,
                                  .counts = index.counts.data() + (t * groups + g) * 6,
                                  .is_first = t == 0});
    }
  }
}

void input_gradient_block(const NmMatrixForm& form, const NmColumns& index, int64_t begin,
                          int64_t end, const float* values, const float* dy, int64_t width,
                          float* dx) {
  const char* from = reinterpret_cast<const char*>(dy);
  char* into = reinterpret_cast<char*>(dx);
  if (width > 2 * kLanes) {
    input_gradient_pass<4>(form, index, begin, end, values, from, into);
  } else if (width > kLanes) {
    input_gradient_pass<2>(form, index, begin, end, values, from, into);
  } else {
    input_gradient_pass<1>(form, index, begin, end, values, from, into);
  }
}

#else

bool has_columns() { return false; }
void input_gradient_block(const NmMatrixForm&, const NmColumns&, int64_t, int64_t, const float*,
                          const float*, int64_t, float*) {}

#endif

}  // namespace
}  // namespace lacuna::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace lacuna {
namespace {

HWY_EXPORT(has_columns);
HWY_EXPORT(input_gradient_block);

// A tile of dY takes a quarter of a kilobyte per row. In a first-level cache of 48 KiB, 128 rows
// leave room for values and sums; in 32 KiB, 96 rows.
int64_t most_tile_rows() {
  static const bool is_large = first_level_bytes() >= 48 * 1024;
  return is_large ? 128 : 96;
}

// The place of a pair of columns a < b in NmColumns::kPairs.
constexpr int kPairOf[4][4] = {{-1, 0, 1, 2}, {-1, -1, 3, 4}, {-1, -1, -1, 5}, {-1, -1, -1, -1}};

}  // namespace

bool nm_has_columns(const NmMatrix& s) {
  const PatternShape& pattern = s.form.pattern;
  return pattern.n() == 2 && pattern.m() == 4 && pattern.unit_rows() == 1 && s.unused.empty() &&
         !use_reference_kernels() && HWY_DYNAMIC_DISPATCH(has_columns)();
}

NmColumns nm_columns(const NmMatrix& s) {
  const NmMatrixForm& form = s.form;
  const int64_t groups = form.columns / 4, in_tile = form.tile_columns() / 4;
  NmColumns index;
  const int64_t most = most_tile_rows();
  index.tiles = std::max<int64_t>((form.rows + most - 1) / most, 1);
  index.tile_rows = std::max<int64_t>((form.rows + index.tiles - 1) / index.tiles, 1);
  index.tiles = (form.rows + index.tile_rows - 1) / index.tile_rows;
  index.rows.resize(static_cast<size_t>(form.rows * groups));
  index.counts.assign(static_cast<size_t>(index.tiles * groups * 6), 0);
  parallel_blocks(index.tiles, [&](int64_t t) {
    const int64_t first_row = t * index.tile_rows;
    const int64_t rows = std::min(index.tile_rows, form.rows - first_row);
    for (int64_t g = 0; g < groups; ++g) {
      const NmTile tile = form.tile(g / in_tile);
      const int64_t in_row = g % in_tile;
      uint8_t* counts = index.counts.data() + (t * groups + g) * 6;
      const auto pair_of = [&](int64_t row) {
        const uint8_t* codes =
            s.codes.data() + tile.first_code + (first_row + row) * tile.code_bytes;
        return kPairOf[form.code(codes, 2 * in_row)][form.code(codes, 2 * in_row + 1)];
      };
      for (int64_t row = 0; row < rows; ++row) ++counts[pair_of(row)];
      std::array<uint8_t*, 6> next{};
      uint8_t* begin = index.rows.data() + first_row * groups + g * rows;
      for (size_t pair = 0; pair < next.size(); begin += counts[pair++]) next[pair] = begin;
      for (int64_t row = 0; row < rows; ++row) {
        *next[static_cast<size_t>(pair_of(row))]++ = static_cast<uint8_t>(row);
      }
    }
  });
  return index;
}

void nm_values_by_columns(const NmMatrixForm& form, const NmColumns& index, const float* values,
                          float* into) {
  const int64_t groups = form.columns / 4, in_tile = form.tile_columns() / 4;
  parallel_blocks(index.tiles, [&](int64_t t) {
    const int64_t first_row = t * index.tile_rows;
    const int64_t rows = std::min(index.tile_rows, form.rows - first_row);
    const uint8_t* next = index.rows.data() + first_row * groups;
    float* to = into + 2 * first_row * groups;
    for (int64_t g = 0; g < groups; ++g) {
      const NmTile tile = form.tile(g / in_tile);
      const float* from = values + tile.first_slot + first_row * tile.slots + 2 * (g % in_tile);
      for (const uint8_t* end = next + rows; next < end; ++next, to += 2) {
        std::memcpy(to, from + *next * tile.slots, 2 * sizeof(float));
      }
    }
  });
}

void nm_input_gradient(const NmMatrixForm& form, const NmColumns& index, const float* values,
                       const float* dy, int64_t batch, float* dx) {
  const auto run = HWY_DYNAMIC_DISPATCH(input_gradient_block);
  constexpr int64_t kGroupsOfBlock = 128;
  const int64_t groups = form.columns / 4;
  const int64_t blocks = (groups + kGroupsOfBlock - 1) / kGroupsOfBlock;
  if (form.rows == 0) std::fill_n(dx, slab_count(batch) * form.columns * kSlabWidth, 0.0f);
  for_each_slab_part(batch, blocks, [&](int64_t slab, int64_t block, int64_t width, bool) {
    const int64_t begin = block * kGroupsOfBlock;
    run(form, index, begin, std::min(begin + kGroupsOfBlock, groups), values,
        dy + slab * form.rows * kSlabWidth, width, dx + slab * form.columns * kSlabWidth);
  });
}

}  // namespace lacuna
#endif  // HWY_ONCE
