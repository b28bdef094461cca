// The weight gradient of sparse convolutions at the nonzeros.
//
// A row's tile of the output gradient stays in registers. A nonzero takes one multiply-add for each
// of its lines with a shifted run of x; four nonzeros are reduced over their lanes together.
#include "lacuna/framework/kernels/conv/gather.hpp"
#include "lacuna/framework/kernels/conv/gather_reference.hpp"
#include "lacuna/framework/kernels/instruction_set.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "lacuna/framework/kernels/conv/tap_gradient.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "lacuna/framework/kernels/conv/ahead.inc"

HWY_BEFORE_NAMESPACE();
namespace lacuna::HWY_NAMESPACE {
namespace {

#if HWY_TARGET == HWY_SCALAR

void gradient(const TapStream& stream, const float* x, const float* dy, float* into,
              const PixelRun& run, float* lanes) {
  reference::tap_gradient(stream, x, dy, into, run, lanes);
}

#else

// One group of rows over one tile of pixels.
struct GradientRun {
  const char* x = nullptr;    // the tile's first pixel in its first source plane
  int64_t x_row = 0;          // bytes from a row to the next
  const float* dy = nullptr;  // the tile's first pixel in the first plane of output gradients
  int64_t dy_row = 0, dy_plane = 0;  // floats
  bool is_first = false, fetches_ahead = false;
  int skipped_rows = 0, skipped_columns = 0;  // that other tiles have counted
  const uint32_t* rows = nullptr;
  const int32_t* offsets = nullptr;
  float* gradient = nullptr;
  float* lanes = nullptr;  // of the planes' lines, or null: not wanted, or counted by another tile
  int64_t count = 0, length = 0;
};

// Adds the sums of `kCount` nonzeros.
template <int kStep, int kCount, int kRows, int kColumns>
HWY_INLINE void add_sums(const Vector (&dy)[kRows][kColumns][kLineVectors], const char* x,
                         int64_t x_row, const int32_t* offsets, float* gradient) {
  const char* from[4];
  Vector sums[4];
  for (int u = 0; u < 4; ++u) {
    from[u] = x + offsets[u < kCount ? u : 0];
    sums[u] = hn::Zero(Floats());
  }
  HWY_UNROLL(8)
  for (int r = 0; r < kRows; ++r) {
    const float* row[4];
    for (int u = 0; u < kCount; ++u) {
      row[u] = opaque(reinterpret_cast<const float*>(from[u] + r * x_row));
    }
    HWY_UNROLL(32)
    for (int c = 0; c < kColumns; ++c) {
      for (int v = 0; v < kLineVectors; ++v) {
        for (int u = 0; u < kCount; ++u) {
          sums[u] = hn::MulAdd(dy[r][c][v], load_line(row[u], c * kStep, v), sums[u]);
        }
      }
    }
  }
  put<kCount, true>(add_blocks(block_sums_of(sums[0], sums[1], sums[2], sums[3])), gradient);
}

// Sums the lines of a tile.
template <int kRows, int kColumns>
HWY_INLINE void add_lines(const Vector (&dy)[kRows][kColumns][kLineVectors], float* lanes) {
  for (int v = 0; v < kLineVectors; ++v) {
    Vector sum = load_line(lanes, 0, v);
    for (int r = 0; r < kRows; ++r) {
      for (int c = 0; c < kColumns; ++c) sum = hn::Add(sum, dy[r][c][v]);
    }
    store_line(sum, lanes, 0, v);
  }
}

template <int kRows, int kColumns, int kStep>
HWY_NOINLINE void gradient_group(const GradientRun& run, Ahead<kRows, kColumns, kStep, 1>& ahead) {
  const int32_t* offsets = run.offsets;
  float* into = run.gradient;
  const int64_t x_row = run.x_row;
  for (int64_t i = 0; i < run.count; ++i) {
    const float* at = run.dy + run.rows[i] * run.dy_plane;
    ahead.fetch();
    if (!run.is_first && run.fetches_ahead) {
      fetch_tile<kRows, kColumns>(run.dy + run.rows[i + 1] * run.dy_plane, run.dy_row);
    }
    Vector dy[kRows][kColumns][kLineVectors];
    for_each_vector<kRows, kColumns>([&](int r, int c, int v) HWY_ATTR {
      const bool is_counted = r < run.skipped_rows || c < run.skipped_columns;
      dy[r][c][v] = is_counted ? hn::Zero(Floats()) : load_line(at + r * run.dy_row, c, v);
    });
    if (run.lanes != nullptr) add_lines(dy, run.lanes + run.rows[i] * kImageSlabWidth);
    const int32_t* end = offsets + run.length;
    for (; offsets + 4 <= end; offsets += 4, into += 4) {
      add_sums<kStep, 4>(dy, run.x, x_row, offsets, into);
    }
    const int64_t rest = end - offsets;
    if (rest == 1) add_sums<kStep, 1>(dy, run.x, x_row, offsets, into);
    if (rest == 2) add_sums<kStep, 2>(dy, run.x, x_row, offsets, into);
    if (rest == 3) add_sums<kStep, 3>(dy, run.x, x_row, offsets, into);
    offsets += rest;
    into += rest;
  }
}

template <int kStep>
void gradient_steps(const TapStream& stream, const float* x, const float* dy, float* into,
                    const PixelRun& run, float* lanes) {
  for_each_tile<kGradientLines>(run, [&](auto rows, auto columns, const TilePlace& place) {
    const int64_t row = place.row, column = place.column;
    const int skipped_rows = place.skipped_rows, skipped_columns = place.skipped_columns;
    const float* pixel = x + (row * run.from_row_lines + column * kStep) * kImageSlabWidth;
    Ahead<decltype(rows)::value, decltype(columns)::value, kStep, 1> ahead(stream, run, place, x,
                                                                           dy);
    for (const TapTile& tile : stream.tiles) {
      const float* first = pixel + tile.first_plane * run.from_plane_lines * kImageSlabWidth;
      for (int64_t g = tile.first_group; g < tile.end_group; ++g) {
        const TapGroup& at = stream.groups[static_cast<size_t>(g)];
        const bool is_first = &tile == stream.tiles.data();  // all rows are in the first tile
        if (at.length == 0 && (!is_first || lanes == nullptr)) continue;
        gradient_group<decltype(rows)::value, decltype(columns)::value, kStep>(
            {.x = reinterpret_cast<const char*>(first),
             .x_row = run.from_row_lines * kImageLineBytes,
             .dy = dy + (row * run.to_row_lines + column) * kImageSlabWidth,
             .dy_row = run.to_row_lines * kImageSlabWidth,
             .dy_plane = run.to_plane_lines * kImageSlabWidth,
             .is_first = is_first,
             .fetches_ahead = is_large(stream, decltype(rows)::value * decltype(columns)::value),
             .skipped_rows = skipped_rows,
             .skipped_columns = skipped_columns,
             .rows = stream.rows_in_order.data() + at.first_row,
             .offsets = stream.offsets.data() + at.first_value,
             .gradient = into + at.first_value,
             .lanes = is_first ? lanes : nullptr,
             .count = at.rows,
             .length = at.length},
            ahead);
      }
    }
  });
}

void gradient(const TapStream& stream, const float* x, const float* dy, float* into,
              const PixelRun& run, float* lanes) {
  if (run.from_step == 2) {
    gradient_steps<2>(stream, x, dy, into, run, lanes);
  } else {
    gradient_steps<1>(stream, x, dy, into, run, lanes);
  }
}

#endif  // HWY_TARGET != HWY_SCALAR

}  // namespace
}  // namespace lacuna::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace lacuna {
namespace {

HWY_EXPORT(gradient);

}  // namespace

void tap_gradient(const TapStream& stream, const float* x, const float* dy, float* gradient,
                  const PixelRun& run, float* lanes) {
  if (use_reference_kernels()) return reference::tap_gradient(stream, x, dy, gradient, run, lanes);
  HWY_DYNAMIC_DISPATCH(gradient)(stream, x, dy, gradient, run, lanes);
}

}  // namespace lacuna
#endif  // HWY_ONCE
