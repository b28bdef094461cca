// The gather of sparse convolutions: forward, and the input gradient on the transposed stream.
//
// A tile of neighbouring pixels, up to eight in each of one or two rows, stays in registers while
// the nonzeros of an output plane are processed: each is a broadcast and a multiply-add for every
// line, with operands at fixed distances. So the tile shares index and broadcast, and the loop is
// bound by the load of each multiply-add. Source planes form tiles that stay in the first-level
// cache; between them, the sums are kept in the output itself. The last tile of a row or column
// overlaps the one before: pixels that two tiles compute get the same bits twice.
#include "lacuna/framework/kernels/conv/gather.hpp"

#include <cstring>

#include "lacuna/framework/kernels/conv/gather_reference.hpp"
#include "lacuna/framework/kernels/instruction_set.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "lacuna/framework/kernels/conv/gather.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "lacuna/framework/kernels/conv/ahead.inc"

HWY_BEFORE_NAMESPACE();
namespace lacuna::HWY_NAMESPACE {
namespace {

#if HWY_TARGET == HWY_SCALAR

void gather(const TapStream& stream, const float* values, const float* from, float* to,
            const float* bias, const PixelRun& run) {
  reference::gather_pixels(stream, values, from, to, bias, run);
}

TileSize tile(Extent, int) { return {1, 1}; }

#else

// One group of rows over one tile of pixels.
struct GatherRun {
  const char* from = nullptr;          // the tile's first pixel in its first source plane
  int64_t from_row = 0;                // bytes from a row to the next
  float* to = nullptr;                 // the tile's first pixel in the first output plane
  int64_t to_row = 0, to_plane = 0;    // floats
  const int64_t* to_planes = nullptr;  // lines, or null
  const float* bias = nullptr;
  bool is_first = false;  // of the source tiles: sums begin
  bool fetches_ahead = false;
  bool ends_rows = false;  // a line of zeros comes behind the tile's rows
  const uint32_t* rows = nullptr;
  const int32_t* offsets = nullptr;
  const float* values = nullptr;
  int64_t count = 0, length = 0;

  float* plane(uint32_t row) const {
    return to + (to_planes == nullptr ? row * to_plane : to_planes[row] * kImageSlabWidth);
  }
};

template <int kRows, int kColumns>
using Sums = Vector[kRows][kColumns][kLineVectors];

// Adds one nonzero's part of the tile.
template <int kStep, int kRows, int kColumns>
HWY_INLINE void add_tap(const char* from, int64_t from_row, Vector factor,
                        Sums<kRows, kColumns>& sums) {
  HWY_UNROLL(32)
  for (int r = 0; r < kRows; ++r) {
    const auto* row = opaque(reinterpret_cast<const float*>(from + r * from_row));
    HWY_UNROLL(32)
    for (int c = 0; c < kColumns; ++c) {
      HWY_UNROLL(4)
      for (int v = 0; v < kLineVectors; ++v) {
        sums[r][c][v] = hn::MulAdd(factor, load_line(row, c * kStep, v), sums[r][c][v]);
      }
    }
  }
}

// For four nonzeros, with three loads for offsets and values: each further load would replace the
// load of a line.
template <int kStep, int kRows, int kColumns>
HWY_INLINE void add_four_taps(const char* from, int64_t from_row, const int32_t* offsets,
                              const float* values, Sums<kRows, kColumns>& sums) {
  int64_t pairs[2];
  std::memcpy(pairs, offsets, sizeof(pairs));
  const Vector all = hn::LoadDup128(Floats(), values);
  const auto first = [](int64_t pair) { return static_cast<int32_t>(pair); };
  const auto second = [](int64_t pair) { return pair >> 32; };
  add_tap<kStep>(from + first(pairs[0]), from_row, hn::Broadcast<0>(all), sums);
  add_tap<kStep>(from + second(pairs[0]), from_row, hn::Broadcast<1>(all), sums);
  add_tap<kStep>(from + first(pairs[1]), from_row, hn::Broadcast<2>(all), sums);
  add_tap<kStep>(from + second(pairs[1]), from_row, hn::Broadcast<3>(all), sums);
}

template <int kRows, int kColumns, int kFromStep, int kToStep>
HWY_NOINLINE void gather_group(const GatherRun& run,
                               Ahead<kRows, kColumns, kFromStep, kToStep>& ahead) {
  const Floats d;
  const int32_t* offset = run.offsets;
  const float* value = run.values;
  const int64_t from_row = run.from_row, to_row = run.to_row;
  for (int64_t i = 0; i < run.count; ++i) {
    float* to = run.plane(run.rows[i]);
    Sums<kRows, kColumns> sums;
    ahead.fetch();
    if (!run.is_first && run.fetches_ahead) {
      fetch_tile<kRows, kColumns, kToStep>(run.plane(run.rows[i + 1]), to_row);
    }
    if (run.is_first) {
      const Vector start = hn::Set(d, run.bias == nullptr ? 0.0f : run.bias[run.rows[i]]);
      for_each_vector<kRows, kColumns>([&](int r, int c, int v)
                                           HWY_ATTR { sums[r][c][v] = start; });
    } else {
      float* row = to;
      HWY_UNROLL(8)
      for (int r = 0; r < kRows; ++r, row = opaque(row + to_row)) {
        HWY_UNROLL(32)
        for (int c = 0; c < kColumns; ++c) {
          for (int v = 0; v < kLineVectors; ++v) sums[r][c][v] = load_line(row, c * kToStep, v);
        }
      }
    }
    for (int64_t fours = run.length / 4; fours > 0; --fours, offset += 4, value += 4) {
      add_four_taps<kFromStep>(run.from, from_row, offset, value, sums);
    }
    switch (run.length % 4) {
      case 3:
        add_tap<kFromStep>(run.from + *offset++, from_row, hn::Set(d, *value++), sums);
        [[fallthrough]];
      case 2:
        add_tap<kFromStep>(run.from + *offset++, from_row, hn::Set(d, *value++), sums);
        [[fallthrough]];
      case 1:
        add_tap<kFromStep>(run.from + *offset++, from_row, hn::Set(d, *value++), sums);
        break;
      default:
        break;
    }
    HWY_UNROLL(8)
    for (int r = 0; r < kRows; ++r, to = opaque(to + to_row)) {
      HWY_UNROLL(32)
      for (int c = 0; c < kColumns; ++c) {
        for (int v = 0; v < kLineVectors; ++v) store_line(sums[r][c][v], to, c * kToStep, v);
      }
      if (run.ends_rows) {
        for (int v = 0; v < kLineVectors; ++v) store_line(hn::Zero(d), to, kColumns, v);
      }
    }
  }
}

template <int kFromStep, int kToStep>
void gather_steps(const TapStream& stream, const float* values, const float* from, float* to,
                  const float* bias, const PixelRun& run) {
  for_each_tile<kGatherLines>(run, [&](auto rows, auto columns, const TilePlace& place) {
    const int64_t row = place.row, column = place.column;
    constexpr int kRows = decltype(rows)::value, kColumns = decltype(columns)::value;
    const int64_t first = row * run.from_row_lines + column * kFromStep;
    const bool ends_rows = run.ends_rows && column + kColumns == run.width;
    Ahead<kRows, kColumns, kFromStep, kToStep> ahead(stream, run, place, from, to);
    GatherRun group{.from_row = run.from_row_lines * kImageLineBytes,
                    .to = to + (row * run.to_row_lines + column * kToStep) * kImageSlabWidth,
                    .to_row = run.to_row_lines * kImageSlabWidth,
                    .to_plane = run.to_plane_lines * kImageSlabWidth,
                    .to_planes = run.to_planes,
                    .bias = bias,
                    .is_first = true,
                    .fetches_ahead = is_large(stream, kRows * kColumns)};
    for (const TapTile& tile : stream.tiles) {
      group.from = reinterpret_cast<const char*>(
          from + (tile.first_plane * run.from_plane_lines + first) * kImageSlabWidth);
      group.ends_rows = ends_rows && &tile == &stream.tiles.back();
      for (int64_t g = tile.first_group; g < tile.end_group; ++g) {
        const TapGroup& at = stream.groups[static_cast<size_t>(g)];
        if (at.length == 0 && !group.is_first && !group.ends_rows) continue;
        group.rows = stream.rows_in_order.data() + at.first_row;
        group.offsets = stream.offsets.data() + at.first_value;
        group.values = values + at.first_value;
        group.count = at.rows;
        group.length = at.length;
        gather_group<kRows, kColumns, kFromStep, kToStep>(group, ahead);
      }
      group.is_first = false;
    }
  });
}

void gather(const TapStream& stream, const float* values, const float* from, float* to,
            const float* bias, const PixelRun& run) {
  if (run.from_step == 2) {
    gather_steps<2, 1>(stream, values, from, to, bias, run);
  } else if (run.to_step == 2) {
    gather_steps<1, 2>(stream, values, from, to, bias, run);
  } else {
    gather_steps<1, 1>(stream, values, from, to, bias, run);
  }
}

TileSize tile(Extent output, int most_rows) { return choose_tile<kGatherLines>(output, most_rows); }

#endif  // HWY_TARGET != HWY_SCALAR

}  // namespace
}  // namespace lacuna::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace lacuna {
namespace {

HWY_EXPORT(gather);
HWY_EXPORT(tile);

}  // namespace

void gather_pixels(const TapStream& stream, const float* values, const float* from, float* to,
                   const float* bias, const PixelRun& run) {
  if (use_reference_kernels()) {
    return reference::gather_pixels(stream, values, from, to, bias, run);
  }
  HWY_DYNAMIC_DISPATCH(gather)(stream, values, from, to, bias, run);
}

TileSize gather_tile(Extent output, int most_rows) {
  return use_reference_kernels() ? TileSize{} : HWY_DYNAMIC_DISPATCH(tile)(output, most_rows);
}

}  // namespace lacuna
#endif  // HWY_ONCE
