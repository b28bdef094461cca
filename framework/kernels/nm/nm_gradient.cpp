// The N:M weight gradient over batch slabs. See nm.cpp.
#include "lacuna/framework/kernels/nm/nm_gradient.hpp"

#include <algorithm>
#include <utility>

#include "lacuna/framework/core/parallel.h"
#include "lacuna/framework/kernels/instruction_set.hpp"
#include "lacuna/framework/kernels/nm/nm_reference.hpp"
#include "lacuna/framework/kernels/simd/batch_lanes.hpp"
#include "lacuna/framework/kernels/simd/slab.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "lacuna/framework/kernels/nm/nm_gradient.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "lacuna/framework/kernels/nm/nm_run.inc"
#include "lacuna/framework/kernels/simd/batch_lanes.inc"

#ifndef LACUNA_NM_GRADIENT_REFERENCE
#define LACUNA_NM_GRADIENT_REFERENCE
namespace lacuna {
namespace {

// The reference; one call processes all tiles of its rows. `lanes`: BatchLanes, or null.
void reference_gradient_block(const NmMatrix& s, int64_t begin, int64_t end, const NmTiles& tiles,
                              const float* dy, const float* x, int64_t width, bool accumulate,
                              float* gradient, float* lanes, bool) {
  if (tiles.begin > 0) return;
  if (lanes != nullptr) reference::add_to_lanes(dy, begin, end, width, lanes);
  reference::nm_gradient_block(s, begin, end, dy, x, width, accumulate, gradient, false);
}

}  // namespace
}  // namespace lacuna
#endif

HWY_BEFORE_NAMESPACE();
namespace lacuna::HWY_NAMESPACE {
namespace {

#if HWY_TARGET == HWY_SCALAR
void gradient_block(const NmMatrix& s, int64_t begin, int64_t end, const NmTiles& tiles,
                    const float* dy, const float* x, int64_t width, bool accumulate,
                    float* gradient, float* lanes, bool) {
  reference_gradient_block(s, begin, end, tiles, dy, x, width, accumulate, gradient, lanes, false);
}
#else

template <class Code, int kVectors, int kCount>
HWY_INLINE Vector block_sums(const Vector (&dy)[kVectors], const char* x, int64_t group_bytes,
                             const uint8_t* codes) {
  const uint64_t word = Code::word(codes);
  const Vector zero = hn::Zero(Floats());
  const Vector a = dot(dy, row_of<Code, 0>(x, group_bytes, word));
  const Vector b = kCount > 1 ? dot(dy, row_of<Code, 1>(x, group_bytes, word)) : zero;
  const Vector c = kCount > 2 ? dot(dy, row_of<Code, 2>(x, group_bytes, word)) : zero;
  const Vector d = kCount > 3 ? dot(dy, row_of<Code, 3>(x, group_bytes, word)) : zero;
  return block_sums_of(a, b, c, d);
}

template <class Code, int kVectors, int kCount, bool kAdd>
HWY_INLINE void gradient_of(const Vector (&dy)[kVectors], const char* x, int64_t group_bytes,
                            const uint8_t* codes, float* gradient) {
  const Vector sums = block_sums<Code, kVectors, kCount>(dy, x, group_bytes, codes);
  put<kCount, kAdd>(add_blocks(sums), gradient);
}

template <class Code, int kVectors, bool kAdd>
HWY_INLINE void gradient_row(const NmRun& run, int64_t i, float* lanes) {
  const char* y = run.y + i * kSlabRowBytes;
  ask_for_next_slab(run, y);
  Vector dy[kVectors];
  for (int v = 0; v < kVectors; ++v) dy[v] = load(y, v);
  if (lanes != nullptr) add_to_lanes(dy, lanes + i * BatchLanes::kLanes);
  const uint8_t* codes = run.codes + i * run.code_bytes;
  float* gradient = run.gradient + i * run.slots;
  const int64_t group_bytes = run.group_bytes;
  const auto codes_of = [&](int64_t at) HWY_ATTR { return codes + at / 4 * Code::kBytesOfFour; };
  for_each_four<Code>(
      run,
      [&](const char* x, int64_t at) HWY_ATTR {
        gradient_of<Code, kVectors, 4, kAdd>(dy, x, group_bytes, codes_of(at), gradient + at);
      },
      [&](const char* x, int64_t at, int64_t count) HWY_ATTR {
        const uint8_t* word = codes_of(at);
        if (count == 1)
          return gradient_of<Code, kVectors, 1, kAdd>(dy, x, group_bytes, word, gradient + at);
        if (count == 2)
          return gradient_of<Code, kVectors, 2, kAdd>(dy, x, group_bytes, word, gradient + at);
        gradient_of<Code, kVectors, 3, kAdd>(dy, x, group_bytes, word, gradient + at);
      });
}

template <class Code, int kVectors, bool kAdd>
HWY_NOINLINE void gradient_tile(const NmRun& run, float* lanes) {
  const char* ahead = run.ahead;
  for (int64_t i = run.begin; i < run.end; ++i) {
    if (i % 2 == 0) ask_ahead(run, ahead);
    gradient_row<Code, kVectors, kAdd>(run, i, lanes);
  }
}

void gradient_block(const NmMatrix& s, int64_t begin, int64_t end, const NmTiles& tiles,
                    const float* dy, const float* x, int64_t width, bool accumulate,
                    float* gradient, float* lanes, bool prefetch_next) {
  for (int64_t c = 0; c < width; c += kPass * kLanes) {
    const NmRun run{.begin = begin,
                    .end = end,
                    .x = reinterpret_cast<const char*>(x + c),
                    .y = const_cast<char*>(reinterpret_cast<const char*>(dy + c)),
                    .gradient = gradient,
                    .next_slab = prefetch_next ? s.form.rows * kSlabRowBytes : 0};
    const bool add = accumulate || c > 0;
    with_vectors(width - c, [&]<int n>(Vectors<n>) HWY_ATTR {
      with_code(s.form, [&]<class Code>(Code) HWY_ATTR {
        for_each_tile(s, tiles, run, [&](const NmRun& r) HWY_ATTR {
          (add ? gradient_tile<Code, n, true>
               : gradient_tile<Code, n, false>)(r, r.is_first ? lanes : nullptr);
        });
      });
    });
  }
}

#endif  // HWY_TARGET == HWY_SCALAR

#if HWY_TARGET == HWY_AVX3 || HWY_TARGET == HWY_AVX3_DL

// Two slabs at once, with kPass vectors each: this halves the reductions, which use the same ports
// as the multiply-adds. Half a tile's columns at a time, so that their rows of both slabs stay in
// the first-level cache.
constexpr bool kTakesTwoSlabs = true;

// Bytes from a row of one slab to the same row of the other.
struct SlabStride {
  int64_t x = 0, dy = 0;
};

HWY_INLINE Vector dot_of_two(const Vector (&dy)[2][kPass], const char* x, int64_t stride) {
  Vector sum = dot(dy[0], x);
  for (int v = 0; v < kPass; ++v) sum = hn::MulAdd(dy[1][v], load(x + stride, v), sum);
  return sum;
}

template <class Code>
HWY_INLINE Vector block_sums_of_two(const Vector (&dy)[2][kPass], const char* x, int64_t stride,
                                    int64_t group_bytes, const uint8_t* codes) {
  const uint64_t word = Code::word(codes);
  const Vector a = dot_of_two(dy, row_of<Code, 0>(x, group_bytes, word), stride);
  const Vector b = dot_of_two(dy, row_of<Code, 1>(x, group_bytes, word), stride);
  const Vector c = dot_of_two(dy, row_of<Code, 2>(x, group_bytes, word), stride);
  const Vector d = dot_of_two(dy, row_of<Code, 3>(x, group_bytes, word), stride);
  return block_sums_of(a, b, c, d);
}

// Processes slots [begin, end) of each row, multiples of eight.
template <class Code, bool kAdd>
HWY_NOINLINE void gradient_part_of_two(const NmRun& run, const SlabStride& stride, int64_t begin,
                                       int64_t end, float* lanes) {
  const hn::Half<Floats> half;
  const int64_t step = Code::kGroups * run.group_bytes, group_bytes = run.group_bytes;
  for (int64_t i = run.begin; i < run.end; ++i) {
    const char* y = run.y + i * kSlabRowBytes;
    Vector dy[2][kPass];
    for (int v = 0; v < kPass; ++v) {
      dy[0][v] = load(y, v);
      dy[1][v] = load(y + stride.dy, v);
    }
    if (lanes != nullptr) {
      for (const auto& slab : dy) add_to_lanes(slab, lanes + i * BatchLanes::kLanes);
    }
    const char* x = run.x + begin / 4 * step;
    const uint8_t* codes = run.codes + i * run.code_bytes;
    float* gradient = run.gradient + i * run.slots;
    for (int64_t at = begin; at < end; at += 8, x += 2 * step) {
      const uint8_t* word = codes + at / 4 * Code::kBytesOfFour;
      const Vector first = block_sums_of_two<Code>(dy, x, stride.x, group_bytes, word);
      const Vector second =
          block_sums_of_two<Code>(dy, x + step, stride.x, group_bytes, word + Code::kBytesOfFour);
      auto sums = add_blocks_of_two(first, second);
      if constexpr (kAdd) sums = hn::Add(sums, hn::LoadU(half, gradient + at));
      hn::StoreU(sums, half, gradient + at);
    }
  }
}

void gradient_of_two_slabs(const NmMatrix& s, int64_t begin, int64_t end, const NmTiles& tiles,
                           const float* dy, const float* x, bool accumulate, float* gradient,
                           float* lanes) {
  const NmRun run{.begin = begin,
                  .end = end,
                  .x = reinterpret_cast<const char*>(x),
                  .y = const_cast<char*>(reinterpret_cast<const char*>(dy)),
                  .gradient = gradient};
  const SlabStride stride{.x = s.form.columns * kSlabRowBytes, .dy = s.form.rows * kSlabRowBytes};
  with_code(s.form, [&]<class Code>(Code) HWY_ATTR {
    if constexpr (Code::kSlots < 4) {
      for_each_tile(s, tiles, run, [&](const NmRun& r) HWY_ATTR {
        const int64_t middle = r.slots / 16 * 8;
        for (const auto& [first, last] : {std::pair{int64_t{0}, middle}, {middle, r.slots}}) {
          const bool counts = r.is_first && last == r.slots;  // once for all rows
          (accumulate ? gradient_part_of_two<Code, true>
                      : gradient_part_of_two<Code, false>)(r, stride, first, last,
                                                           counts ? lanes : nullptr);
        }
      });
    }
  });
}

#else

constexpr bool kTakesTwoSlabs = false;
void gradient_of_two_slabs(const NmMatrix&, int64_t, int64_t, const NmTiles&, const float*,
                           const float*, bool, float*, float*) {}

#endif

bool takes_two_slabs() { return kTakesTwoSlabs; }

}  // namespace
}  // namespace lacuna::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace lacuna {
namespace {

HWY_EXPORT(gradient_block);
HWY_EXPORT(gradient_of_two_slabs);
HWY_EXPORT(takes_two_slabs);

// How the gradient, which cannot be divided by slabs, is cut: into blocks of rows and, if these are
// few (as for activations), also into parts of the tiles. Each part has enough work for a thread.
struct GradientCut {
  explicit GradientCut(const NmMatrixForm& form, int64_t batch)
      : rows(form.rows_of_block()), blocks((form.rows + rows - 1) / rows) {
    constexpr int64_t kParts = 8, kMultiplied = 1 << 18;
    const int64_t most = rows * form.slots_of_row() * batch / kMultiplied;
    const int64_t parts =
        std::max(std::min(kParts / std::max<int64_t>(blocks, 1), most), int64_t{1});
    tiles = (form.tiles() + parts - 1) / parts;
    tile_parts = (form.tiles() + tiles - 1) / tiles;
  }
  int64_t rows = 0, blocks = 0;       // rows of a block, number of blocks
  int64_t tiles = 0, tile_parts = 0;  // tiles of a part, number of parts per block
};

// Whether full slabs are processed in pairs: one or two slots per group, eight at a time per tile.
bool goes_by_two_slabs(const NmMatrixForm& form) {
  return form.slots() < 4 && form.tile(form.tiles() - 1).slots % 8 == 0 &&
         form.tile(0).slots % 8 == 0 && !use_reference_kernels() &&
         HWY_DYNAMIC_DISPATCH(takes_two_slabs)();
}

}  // namespace

void nm_gradient(const NmMatrix& s, const float* dy, const float* x, int64_t batch,
                 Accumulate accumulate, float* gradient) {
  nm_gradient(s, dy, x, batch, accumulate, gradient, nullptr);
}

void nm_gradient(const NmMatrix& s, const float* dy, const float* x, int64_t batch,
                 Accumulate accumulate, float* gradient, float* dy_sums) {
  const bool adds = accumulate == Accumulate::Yes;
  const NmMatrixForm& form = s.form;
  if (batch == 0 && !adds) std::fill_n(gradient, form.stored(), 0.0f);
  const auto run =
      use_reference_kernels() ? reference_gradient_block : HWY_DYNAMIC_DISPATCH(gradient_block);
  const auto run_two = HWY_DYNAMIC_DISPATCH(gradient_of_two_slabs);
  const bool by_two = goes_by_two_slabs(form);
  const int64_t slabs = slab_count(batch), full_slabs = batch / kSlabWidth;
  const bool is_large = slabs_exceed_cache(form.rows, form.columns, slabs);
  const GradientCut cut(form, batch);
  BatchLanes sums(dy_sums, form.rows);
  parallel_blocks(cut.blocks * cut.tile_parts, [&](int64_t unit) {
    const int64_t begin = unit / cut.tile_parts * cut.rows,
                  first = unit % cut.tile_parts * cut.tiles;
    const int64_t end = std::min(begin + cut.rows, form.rows);
    const NmTiles tiles{first, std::min(first + cut.tiles, form.tiles())};
    float* lanes = tiles.begin == 0 ? sums.begin(begin, end) : nullptr;
    int64_t slab = 0;
    for (; by_two && slab + 2 <= full_slabs; slab += 2) {
      run_two(s, begin, end, tiles, dy + slab * form.rows * kSlabWidth,
              x + slab * form.columns * kSlabWidth, adds || slab > 0, gradient, lanes);
    }
    for (; slab < slabs; ++slab) {
      run(s, begin, end, tiles, dy + slab * form.rows * kSlabWidth,
          x + slab * form.columns * kSlabWidth, std::min(kSlabWidth, batch - slab * kSlabWidth),
          adds || slab > 0, gradient, lanes, is_large && slab + 1 < slabs);
    }
    if (tiles.begin == 0) sums.end(begin, end);
  });
  for (const uint32_t slot : s.unused) gradient[slot] = 0.0f;
}

}  // namespace lacuna
#endif  // HWY_ONCE
