// The N:M products over batch slabs: as those of csr.cpp, with less to fetch.
//
// All rows of a tile have their slots at the same groups of columns, so that two rows share the
// pointers to a group's activations and a value adds only its code to them: for 2:4 one byte of
// codes serves four values. On Zen 4, where a cycle has one 64-byte load and one multiply-add, both
// rows' 32 of either for four slots hide the rest.
#include "lacuna/framework/kernels/nm/nm.h"

#include <algorithm>

#include "lacuna/framework/core/parallel.h"
#include "lacuna/framework/kernels/instruction_set.h"
#include "lacuna/framework/kernels/nm/nm_reference.h"
#include "lacuna/framework/kernels/simd/slab.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "lacuna/framework/kernels/nm/nm.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "lacuna/framework/kernels/nm/nm_loop.inc"
#include "lacuna/framework/kernels/simd/slab.inc"

#ifndef LACUNA_NM_RUN
#define LACUNA_NM_RUN
namespace lacuna {
namespace {

// Tiles [begin, end).
struct NmTiles {
  int64_t begin = 0, end = 0;
};

// Rows [begin, end) of one tile in one slab.
struct NmRun {
  int64_t begin = 0, end = 0;
  const char* x = nullptr;        // the tile's first row of the slab
  char* y = nullptr;              // the slab: outputs, or output gradients
  const float* bias = nullptr;    // by row, or null
  const float* values = nullptr;  // the tile's, as what follows
  float* gradient = nullptr;
  const uint8_t* codes = nullptr;
  int64_t slots = 0, code_bytes = 0;  // of a row
  int64_t group_bytes = 0;            // of the slab's rows of a group
  int64_t fours = 0;                  // in a group: 1, but for groups of eight slots and more
  bool is_first = false;              // the outputs begin with the bias
  // The next tile's activations, of which each pair of rows asks for some lines ahead.
  const char* ahead = nullptr;
  int64_t ahead_lines = 0;
  // Bytes from a row of y to the same row of the next slab, which is asked for too; 0: it is not.
  int64_t next_slab = 0;
};

}  // namespace
}  // namespace lacuna
#endif

HWY_BEFORE_NAMESPACE();
namespace lacuna::HWY_NAMESPACE {
namespace {

#if HWY_TARGET == HWY_SCALAR
void product_block(const NmMatrix& s, int64_t begin, int64_t end, const float* values,
                   const float* x, int64_t width, const float* bias, float* y, bool) {
  reference::nm_product_block(s, begin, end, values, x, width, bias, y, false);
}
void gradient_block(const NmMatrix& s, int64_t begin, int64_t end, const NmTiles& tiles,
                    const float* dy, const float* x, int64_t width, bool accumulate,
                    float* gradient, bool) {
  if (tiles.begin > 0) return;  // all tiles come at once
  reference::nm_gradient_block(s, begin, end, dy, x, width, accumulate, gradient, false);
}
#else

// The slab row of entry `i` of four slots whose first group's rows begin at x.
template <class Code, int i>
HWY_INLINE const char* row_of(const char* x, int64_t group_bytes, uint64_t word) {
  static_assert(kSlabRowBytes == 256);
  constexpr int kGroup = i * Code::kGroups / 4;
  return x + kGroup * group_bytes + Code::template column<i, 8>(word);
}

// Calls `four(x, slot)` for each four slots of a row, and `rest(x, slot, count)` for what is left.
template <class Code, class Four, class Rest>
HWY_INLINE void for_each_four(const NmRun& run, const Four& four, const Rest& rest) {
  const char* x = run.x;
  const int64_t step = Code::kGroups * run.group_bytes;
  int64_t at = 0;
  while (at + 4 <= run.slots) {
    if constexpr (Code::kSlots < 4) {
      four(x, at);
      at += 4;
    } else {
      for (const int64_t end = at + 4 * run.fours; at < end; at += 4) four(x, at);
    }
    x += step;
  }
  if constexpr (Code::kSlots < 4) {
    if (at < run.slots) rest(x, at, run.slots - at);
  }
}

// acc[r] += value · x for entry `i` of four in each of the rows.
template <class Code, int i, int kVectors, int kRows>
HWY_INLINE void multiply_add(const char* x, int64_t group_bytes, const uint64_t (&words)[kRows],
                             const Vector (&values)[kRows], Vector (&acc)[kRows][kVectors]) {
  for (int r = 0; r < kRows; ++r) {
    const Vector value = hn::Broadcast<i>(values[r]);
    const char* row = row_of<Code, i>(x, group_bytes, words[r]);
    for (int v = 0; v < kVectors; ++v) acc[r][v] = hn::MulAdd(value, load(row, v), acc[r][v]);
  }
}

HWY_INLINE void ask_for_next_slab(const NmRun& run, const char* y) {
  if (run.next_slab == 0) return;
  for (int v = 0; v < kSlabRowBytes; v += 64) __builtin_prefetch(y + run.next_slab + v, 0, 2);
}

// kRows rows from row i on.
template <class Code, int kVectors, int kRows>
HWY_INLINE void product_rows(const NmRun& run, int64_t i) {
  Vector acc[kRows][kVectors];
  for (int r = 0; r < kRows; ++r) {
    char* y = run.y + (i + r) * kSlabRowBytes;
    ask_for_next_slab(run, y);
    if (run.is_first) {
      const Vector start = hn::Set(Floats(), run.bias == nullptr ? 0.0f : run.bias[i + r]);
      for (int v = 0; v < kVectors; ++v) acc[r][v] = start;
    } else {
      for (int v = 0; v < kVectors; ++v) acc[r][v] = load(y, v);
    }
  }
  const int64_t group_bytes = run.group_bytes;
  const float* values[kRows];
  const uint8_t* codes[kRows];
  for (int r = 0; r < kRows; ++r) {
    values[r] = run.values + (i + r) * run.slots;
    codes[r] = run.codes + (i + r) * run.code_bytes;
  }
  uint64_t words[kRows];
  Vector quads[kRows];
  const auto fetch = [&](int64_t at) HWY_ATTR {
    for (int r = 0; r < kRows; ++r) {
      words[r] = Code::word(codes[r] + at / 4 * Code::kBytesOfFour);
      quads[r] = hn::LoadDup128(Floats(), values[r] + at);
    }
  };
  for_each_four<Code>(
      run,
      [&](const char* x, int64_t at) HWY_ATTR {
        fetch(at);
        multiply_add<Code, 0>(x, group_bytes, words, quads, acc);
        multiply_add<Code, 1>(x, group_bytes, words, quads, acc);
        multiply_add<Code, 2>(x, group_bytes, words, quads, acc);
        multiply_add<Code, 3>(x, group_bytes, words, quads, acc);
      },
      [&](const char* x, int64_t at, int64_t count) HWY_ATTR {
        fetch(at);
        multiply_add<Code, 0>(x, group_bytes, words, quads, acc);
        if (count > 1) multiply_add<Code, 1>(x, group_bytes, words, quads, acc);
        if (count > 2) multiply_add<Code, 2>(x, group_bytes, words, quads, acc);
      });
  for (int r = 0; r < kRows; ++r) {
    for (int v = 0; v < kVectors; ++v) store(acc[r][v], run.y + (i + r) * kSlabRowBytes, v);
  }
}

HWY_INLINE void ask_ahead(const NmRun& run, const char*& ahead) {
  for (int64_t line = 0; line < run.ahead_lines; ++line, ahead += 64) {
    __builtin_prefetch(ahead, 0, 2);
  }
}

// Sums in flight hide the latency of a multiply-add.
template <class Code, int kVectors>
HWY_NOINLINE void product_tile(const NmRun& run) {
  constexpr int kRows = kVectors == 1 ? 4 : kVectors <= 4 ? 2 : 1;
  const char* ahead = run.ahead;
  int64_t i = run.begin;
  for (; i + kRows <= run.end; i += kRows) {
    ask_ahead(run, ahead);
    product_rows<Code, kVectors, kRows>(run, i);
  }
  if constexpr (kRows > 1) {
    for (; i < run.end; ++i) product_rows<Code, kVectors, 1>(run, i);
  }
}

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
HWY_INLINE void gradient_row(const NmRun& run, int64_t i) {
  const char* y = run.y + i * kSlabRowBytes;
  ask_for_next_slab(run, y);
  Vector dy[kVectors];
  for (int v = 0; v < kVectors; ++v) dy[v] = load(y, v);
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
HWY_NOINLINE void gradient_tile(const NmRun& run) {
  const char* ahead = run.ahead;
  for (int64_t i = run.begin; i < run.end; ++i) {
    if (i % 2 == 0) ask_ahead(run, ahead);
    gradient_row<Code, kVectors, kAdd>(run, i);
  }
}

// Runs some tiles of some rows over one slab: `tile(run)`.
template <class Tile>
HWY_INLINE void for_each_tile(const NmMatrix& s, const NmTiles& tiles, NmRun run,
                              const Tile& each) {
  const NmMatrixForm& form = s.form;
  const NmRun whole = run;
  run.group_bytes = form.m() * kSlabRowBytes;
  run.fours = form.slots() / 4;
  const int64_t lines = form.tile_columns() * (kSlabRowBytes / 64);
  for (int64_t t = tiles.begin; t < tiles.end; ++t) {
    const NmTile tile = form.tile(t);
    run.x = whole.x + tile.first_column * kSlabRowBytes;
    run.values = whole.values == nullptr ? nullptr : whole.values + tile.first_slot;
    run.gradient = whole.gradient == nullptr ? nullptr : whole.gradient + tile.first_slot;
    run.codes = s.codes.data() + tile.first_code;
    run.slots = tile.slots;
    run.code_bytes = tile.code_bytes;
    run.is_first = t == 0;
    // What follows is the next tile, or the next slab's first one.
    const bool is_last = t + 1 == tiles.end;
    const int64_t next = is_last ? form.columns + form.tile(tiles.begin).first_column
                                 : tile.first_column + tile.columns;
    const int64_t pairs = (run.end - run.begin) / 2 + 1;
    run.next_slab = is_last ? whole.next_slab : 0;
    run.ahead_lines = is_last && whole.next_slab == 0 ? 0 : (lines + pairs - 1) / pairs;
    run.ahead = whole.x + next * kSlabRowBytes;
    each(run);
  }
}

void product_block(const NmMatrix& s, int64_t begin, int64_t end, const float* values,
                   const float* x, int64_t width, const float* bias, float* y, bool prefetch_next) {
  for (int64_t c = 0; c < width; c += kPass * kLanes) {
    const NmRun run{.begin = begin,
                    .end = end,
                    .x = reinterpret_cast<const char*>(x + c),
                    .y = reinterpret_cast<char*>(y + c),
                    .bias = bias,
                    .values = values,
                    .next_slab = prefetch_next ? s.form.rows * kSlabRowBytes : 0};
    with_vectors(width - c, [&]<int n>(Vectors<n>) HWY_ATTR {
      with_code(s.form, [&]<class Code>(Code) HWY_ATTR {
        for_each_tile(s, {0, s.form.tiles()}, run,
                      [](const NmRun& r) HWY_ATTR { product_tile<Code, n>(r); });
      });
    });
  }
}

void gradient_block(const NmMatrix& s, int64_t begin, int64_t end, const NmTiles& tiles,
                    const float* dy, const float* x, int64_t width, bool accumulate,
                    float* gradient, bool prefetch_next) {
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
        for_each_tile(s, tiles, run, [add](const NmRun& r) HWY_ATTR {
          (add ? gradient_tile<Code, n, true> : gradient_tile<Code, n, false>)(r);
        });
      });
    });
  }
}

#endif  // HWY_TARGET == HWY_SCALAR

}  // namespace
}  // namespace lacuna::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace lacuna {
namespace {

HWY_EXPORT(product_block);
HWY_EXPORT(gradient_block);

// How the gradient, which has no slabs to share out, is cut: blocks of rows, and where these are
// few, as of activations, parts of the tiles too. Each part has some work.
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
  int64_t rows = 0, blocks = 0;       // rows of a block, and how many there are
  int64_t tiles = 0, tile_parts = 0;  // tiles of a part, and how many there are of each block
};

// The reference, which has all tiles of its rows in one.
void reference_gradient_block(const NmMatrix& s, int64_t begin, int64_t end, const NmTiles& tiles,
                              const float* dy, const float* x, int64_t width, bool accumulate,
                              float* gradient, bool) {
  if (tiles.begin > 0) return;
  reference::nm_gradient_block(s, begin, end, dy, x, width, accumulate, gradient, false);
}

}  // namespace

void nm_product(const NmMatrix& s, const float* values, const float* x, int64_t batch,
                const float* bias, float* y) {
  const auto run =
      use_reference_kernels() ? reference::nm_product_block : HWY_DYNAMIC_DISPATCH(product_block);
  const NmMatrixForm& form = s.form;
  const int64_t slabs = slab_count(batch), rows = form.rows_of_block();
  const int64_t blocks = (form.rows + rows - 1) / rows;
  const bool is_large = slabs_exceed_cache(form.rows, form.columns, slabs);
  parallel_blocks(slabs * blocks, [&](int64_t unit) {
    const int64_t slab = unit / blocks, begin = unit % blocks * rows;
    run(s, begin, std::min(begin + rows, form.rows), values, x + slab * form.columns * kSlabWidth,
        std::min(kSlabWidth, batch - slab * kSlabWidth), bias, y + slab * form.rows * kSlabWidth,
        is_large && slab + 1 < slabs);
  });
}

void nm_product_part(const NmMatrix& s, const float* values, int64_t begin, int64_t end,
                     const float* x, int64_t batch, float* y) {
  const auto run =
      use_reference_kernels() ? reference::nm_product_block : HWY_DYNAMIC_DISPATCH(product_block);
  run(s, begin, end, values, x, batch, nullptr, y - begin * kSlabWidth, false);
}

void nm_gradient(const NmMatrix& s, const float* dy, const float* x, int64_t batch,
                 Accumulate accumulate, float* gradient) {
  const bool adds = accumulate == Accumulate::Yes;
  const NmMatrixForm& form = s.form;
  if (batch == 0 && !adds) std::fill_n(gradient, form.stored(), 0.0f);
  const auto run =
      use_reference_kernels() ? reference_gradient_block : HWY_DYNAMIC_DISPATCH(gradient_block);
  const int64_t slabs = slab_count(batch);
  const bool is_large = slabs_exceed_cache(form.rows, form.columns, slabs);
  const GradientCut cut(form, batch);
  parallel_blocks(cut.blocks * cut.tile_parts, [&](int64_t unit) {
    const int64_t begin = unit / cut.tile_parts * cut.rows,
                  first = unit % cut.tile_parts * cut.tiles;
    const int64_t end = std::min(begin + cut.rows, form.rows);
    const NmTiles tiles{first, std::min(first + cut.tiles, form.tiles())};
    for (int64_t slab = 0; slab < slabs; ++slab) {
      run(s, begin, end, tiles, dy + slab * form.rows * kSlabWidth,
          x + slab * form.columns * kSlabWidth, std::min(kSlabWidth, batch - slab * kSlabWidth),
          adds || slab > 0, gradient, is_large && slab + 1 < slabs);
    }
  });
  for (const uint32_t slot : s.unused) gradient[slot] = 0.0f;
}

}  // namespace lacuna
#endif  // HWY_ONCE
