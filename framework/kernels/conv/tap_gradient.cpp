// The weight gradient of sparse convolutions at the nonzeros.
//
// The output gradient's tile of a row stays in registers; a nonzero is a multiply-add for each of
// its lines with a shifted run of x, and four nonzeros are summed over their lanes together.
#include "lacuna/framework/kernels/conv/gather.h"
#include "lacuna/framework/kernels/conv/gather_reference.h"
#include "lacuna/framework/kernels/instruction_set.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "lacuna/framework/kernels/conv/tap_gradient.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "lacuna/framework/kernels/conv/lines.inc"

HWY_BEFORE_NAMESPACE();
namespace lacuna::HWY_NAMESPACE {
namespace {

#if HWY_TARGET == HWY_SCALAR

void gradient(const TapStream& stream, const float* x, const float* dy, float* into,
              const LineRun& run) {
  reference::tap_gradient(stream, x, dy, into, run);
}

#else

// One group of rows over one tile of lines.
struct GroupRun {
  const char* x = nullptr;    // the tile's first line in its first source plane
  const float* dy = nullptr;  // the tile's first line in the first plane of output gradients
  int64_t dy_plane = 0;       // floats
  int64_t skipped = 0;        // lines that another tile has counted
  const uint32_t* rows = nullptr;
  const int32_t* offsets = nullptr;
  float* gradient = nullptr;
  int64_t count = 0, length = 0;
};

// Adds the sums of `kCount` nonzeros.
template <int kLines, int kCount>
HWY_INLINE void add_sums(const Vector (&dy)[kLines][kLineVectors], const char* x,
                         const int32_t* offsets, float* gradient) {
  const float* from[4];
  Vector sums[4];
  for (int u = 0; u < 4; ++u) {
    from[u] = reinterpret_cast<const float*>(x + offsets[u < kCount ? u : 0]);
    sums[u] = hn::Zero(Floats());
  }
  HWY_UNROLL(32)
  for (int j = 0; j < kLines; ++j) {
    for (int v = 0; v < kLineVectors; ++v) {
      for (int u = 0; u < kCount; ++u) {
        sums[u] = hn::MulAdd(dy[j][v], load_line(from[u], j, v), sums[u]);
      }
    }
  }
  put<kCount, true>(add_blocks(block_sums_of(sums[0], sums[1], sums[2], sums[3])), gradient);
}

template <int kLines>
HWY_NOINLINE void gradient_group(const GroupRun& run) {
  const int32_t* offsets = run.offsets;
  float* into = run.gradient;
  for (int64_t i = 0; i < run.count; ++i) {
    const float* at = run.dy + run.rows[i] * run.dy_plane;
    Vector dy[kLines][kLineVectors];
    HWY_UNROLL(32)
    for (int j = 0; j < kLines; ++j) {
      for (int v = 0; v < kLineVectors; ++v) {
        dy[j][v] = j < run.skipped ? hn::Zero(Floats()) : load_line(at, j, v);
      }
    }
    const int32_t* end = offsets + run.length;
    for (; offsets + 4 <= end; offsets += 4, into += 4) {
      add_sums<kLines, 4>(dy, run.x, offsets, into);
    }
    const int64_t rest = end - offsets;
    if (rest == 1) add_sums<kLines, 1>(dy, run.x, offsets, into);
    if (rest == 2) add_sums<kLines, 2>(dy, run.x, offsets, into);
    if (rest == 3) add_sums<kLines, 3>(dy, run.x, offsets, into);
    offsets += rest;
    into += rest;
  }
}

void gradient(const TapStream& stream, const float* x, const float* dy, float* into,
              const LineRun& run) {
  for_each_tile<kGradientLines>(run, [&](auto lines, int64_t line, int64_t skipped) {
    for (const TapTile& tile : stream.tiles) {
      const float* first = x + (tile.first_plane * run.from_plane_lines + line) * kImageSlabWidth;
      for (int64_t g = tile.first_group; g < tile.end_group; ++g) {
        const TapGroup& at = stream.groups[static_cast<size_t>(g)];
        if (at.length == 0) continue;
        gradient_group<decltype(lines)::value>({.x = reinterpret_cast<const char*>(first),
                                                .dy = dy + line * kImageSlabWidth,
                                                .dy_plane = run.to_plane_lines * kImageSlabWidth,
                                                .skipped = skipped,
                                                .rows = stream.rows_in_order.data() + at.first_row,
                                                .offsets = stream.offsets.data() + at.first_value,
                                                .gradient = into + at.first_value,
                                                .count = at.rows,
                                                .length = at.length});
      }
    }
  });
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
                  const LineRun& run) {
  if (use_reference_kernels()) return reference::tap_gradient(stream, x, dy, gradient, run);
  HWY_DYNAMIC_DISPATCH(gradient)(stream, x, dy, gradient, run);
}

}  // namespace lacuna
#endif  // HWY_ONCE
