// The gather of sparse convolutions: forward, and the input gradient on the transposed stream.
//
// A tile of consecutive output lines stays in registers while the nonzeros of a row go by: each is
// a broadcast and a multiply-add for every line, with operands at fixed distances. So the index and
// the broadcast are shared by eight lines (128 outputs; fewer or one less with narrow vectors), and
// what bounds the loop is the load beside each multiply-add: longer tiles share them among more,
// but read more of each source plane than the first-level cache holds of sixteen. Source planes
// come in tiles that stay in the first-level cache; between them the sums wait in the output
// itself. The last tile of a run overlaps the one before: lines that two tiles compute get the same
// bits twice.
#include "lacuna/framework/kernels/conv/gather.h"

#include "lacuna/framework/kernels/conv/gather_reference.h"
#include "lacuna/framework/kernels/instruction_set.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "lacuna/framework/kernels/conv/gather.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "lacuna/framework/kernels/conv/lines.inc"

HWY_BEFORE_NAMESPACE();
namespace lacuna::HWY_NAMESPACE {
namespace {

#if HWY_TARGET == HWY_SCALAR

void gather(const TapStream& stream, const float* values, const float* from, float* to,
            const float* bias, const LineRun& run) {
  reference::gather_lines(stream, values, from, to, bias, run);
}

int64_t tile_lines() { return 1; }

#else

// One group of rows over one tile of lines.
struct GroupRun {
  const char* from = nullptr;  // the tile's first line in its first source plane
  float* to = nullptr;         // the tile's first line in the first output plane
  int64_t to_plane = 0;        // floats
  const float* bias = nullptr;
  bool is_first = false;  // of the source tiles: sums begin
  const uint32_t* rows = nullptr;
  const int32_t* offsets = nullptr;
  const float* values = nullptr;
  int64_t count = 0, length = 0;
  const int64_t* borders = nullptr;  // lines of the tile, in floats, that are no pixels
  int64_t border_count = 0;
};

template <int kLines>
HWY_NOINLINE void gather_group(const GroupRun& run) {
  const Floats d;
  const int32_t* offset = run.offsets;
  const float* value = run.values;
  for (int64_t i = 0; i < run.count; ++i) {
    float* to = run.to + run.rows[i] * run.to_plane;
    Vector sums[kLines][kLineVectors];
    if (run.is_first) {
      const Vector start = hn::Set(d, run.bias == nullptr ? 0.0f : run.bias[run.rows[i]]);
      HWY_UNROLL(32)
      for (int j = 0; j < kLines; ++j) {
        for (int v = 0; v < kLineVectors; ++v) sums[j][v] = start;
      }
    } else {
      HWY_UNROLL(32)
      for (int j = 0; j < kLines; ++j) {
        for (int v = 0; v < kLineVectors; ++v) sums[j][v] = load_line(to, j, v);
      }
    }
    const auto add = [&]() HWY_ATTR {
      const auto* from = reinterpret_cast<const float*>(run.from + *offset++);
      const Vector weight = hn::Set(d, *value++);
      HWY_UNROLL(32)
      for (int j = 0; j < kLines; ++j) {
        for (int v = 0; v < kLineVectors; ++v) {
          sums[j][v] = hn::MulAdd(weight, load_line(from, j, v), sums[j][v]);
        }
      }
    };
    // A run of eight, entered at the remainder: one jump, the same for all rows of the group.
    if (int64_t rounds = (run.length + 7) / 8; rounds > 0) {
      switch (run.length % 8) {
        do {
          case 0:
            add();
            [[fallthrough]];
          case 7:
            add();
            [[fallthrough]];
          case 6:
            add();
            [[fallthrough]];
          case 5:
            add();
            [[fallthrough]];
          case 4:
            add();
            [[fallthrough]];
          case 3:
            add();
            [[fallthrough]];
          case 2:
            add();
            [[fallthrough]];
          default:
            add();
        } while (--rounds > 0);
      }
    }
    HWY_UNROLL(32)
    for (int j = 0; j < kLines; ++j) {
      for (int v = 0; v < kLineVectors; ++v) store_line(sums[j][v], to, j, v);
    }
    for (int64_t b = 0; b < run.border_count; ++b) {
      for (int v = 0; v < kLineVectors; ++v) {
        store_line(hn::Zero(d), to + run.borders[b], 0, v);
      }
    }
  }
}

// The tile whose first output line is `line`.
template <int kLines>
void gather_tile(const TapStream& stream, const float* values, const float* from, float* to,
                 const float* bias, const LineRun& run, int64_t line) {
  int64_t borders[kLines];
  int64_t border_count = 0;
  for (int64_t j = 0; j < kLines; ++j) {
    if ((line + j) % run.row_lines >= run.width) borders[border_count++] = j * kImageSlabWidth;
  }
  GroupRun group{.to = to + line * kImageSlabWidth,
                 .to_plane = run.to_plane_lines * kImageSlabWidth,
                 .bias = bias,
                 .is_first = true,
                 .borders = borders};
  for (const TapTile& tile : stream.tiles) {
    const bool is_last = &tile == &stream.tiles.back();
    group.from = reinterpret_cast<const char*>(
        from + (tile.first_plane * run.from_plane_lines + line) * kImageSlabWidth);
    group.border_count = is_last ? border_count : 0;
    for (int64_t g = tile.first_group; g < tile.end_group; ++g) {
      const TapGroup& at = stream.groups[static_cast<size_t>(g)];
      if (at.length == 0 && !group.is_first && group.border_count == 0) continue;
      group.rows = stream.rows_in_order.data() + at.first_row;
      group.offsets = stream.offsets.data() + at.first_value;
      group.values = values + at.first_value;
      group.count = at.rows;
      group.length = at.length;
      gather_group<kLines>(group);
    }
    group.is_first = false;
  }
}

void gather(const TapStream& stream, const float* values, const float* from, float* to,
            const float* bias, const LineRun& run) {
  for_each_tile<kGatherLines>(run, [&](auto lines, int64_t line, int64_t) {
    gather_tile<decltype(lines)::value>(stream, values, from, to, bias, run, line);
  });
}

int64_t tile_lines() { return kGatherLines; }

#endif  // HWY_TARGET != HWY_SCALAR

}  // namespace
}  // namespace lacuna::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace lacuna {
namespace {

HWY_EXPORT(gather);
HWY_EXPORT(tile_lines);

}  // namespace

void gather_lines(const TapStream& stream, const float* values, const float* from, float* to,
                  const float* bias, const LineRun& run) {
  if (use_reference_kernels()) {
    return reference::gather_lines(stream, values, from, to, bias, run);
  }
  HWY_DYNAMIC_DISPATCH(gather)(stream, values, from, to, bias, run);
}

int64_t gather_tile_lines() {
  return use_reference_kernels() ? 1 : HWY_DYNAMIC_DISPATCH(tile_lines)();
}

}  // namespace lacuna
#endif  // HWY_ONCE
