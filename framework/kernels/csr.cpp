// The products over batch slabs. What makes them fast is explained in docs/kernels.md.
//
// Loads are the bottleneck: beside a 64-byte load of activations even a 4-byte index costs half a
// cycle. So four offsets come with one 64-bit load, and four values with one 16-byte load that is
// replicated to all lanes and spread by in-lane broadcasts.
#include "lacuna/framework/kernels/csr.h"

#include <algorithm>
#include <utility>

#include "lacuna/framework/core/parallel.h"
#include "lacuna/framework/kernels/csr_reference.h"
#include "lacuna/framework/kernels/instruction_set.h"
#include "lacuna/framework/kernels/slab.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "lacuna/framework/kernels/csr.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "lacuna/framework/kernels/slab.inc"

#ifndef LACUNA_CSR_RUN
#define LACUNA_CSR_RUN
namespace lacuna {
namespace {

// One group of rows in one slab.
struct Run {
  const char* x = nullptr;        // the tile's first row of the slab
  char* y = nullptr;              // the slab: outputs, or output gradients
  const float* bias = nullptr;    // by row, or null
  const float* values = nullptr;  // the group's, as what follows
  float* gradient = nullptr;
  const uint32_t* rows = nullptr;
  const uint16_t* offsets = nullptr;
  int64_t count = 0;   // rows
  int64_t length = 0;  // nonzeros of each
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
void product_block(const CsrStream& s, const CsrBlock& block, const float* values, const float* x,
                   int64_t width, const float* bias, float* y, bool) {
  reference::csr_product_block(s, block, values, x, width, bias, y, false);
}
void gradient_block(const CsrStream& s, const CsrBlock& block, const float* dy, const float* x,
                    int64_t width, bool accumulate, float* gradient, bool) {
  reference::csr_gradient_block(s, block, dy, x, width, accumulate, gradient, false);
}
#else

// Keeps the compiler from making separate loads of the parts of a packed word.
HWY_INLINE uint64_t packed(const uint16_t* offsets) {
  uint64_t word;
  std::memcpy(&word, offsets, sizeof word);
#if defined(__GNUC__)
  asm("" : "+r"(word));
#endif
  return word;
}

// Byte offset of the row that entry `i` of the packed word names: 256 · entry.
template <int i>
HWY_INLINE uint64_t row_offset(uint64_t word) {
  static_assert(kSlabRowBytes == 256);
  if constexpr (i == 0) {
    return (word << 8) & 0xffff00;
  } else {
    return (word >> (16 * i - 8)) & 0xffff00;
  }
}

// acc[r] += value · x for entry `i` of four in each of the rows.
template <int i, int kVectors, int kRows>
HWY_INLINE void multiply_add(const char* x, const uint64_t (&words)[kRows],
                             const Vector (&values)[kRows], Vector (&acc)[kRows][kVectors]) {
  for (int r = 0; r < kRows; ++r) {
    const Vector value = hn::Broadcast<i>(values[r]);
    const char* row = x + row_offset<i>(words[r]);
    for (int v = 0; v < kVectors; ++v) acc[r][v] = hn::MulAdd(value, load(row, v), acc[r][v]);
  }
}

// The number of nonzeros in a row, known when compiling or not.
template <int kLength>
HWY_INLINE int64_t length_of(const Run& run) {
  return kLength >= 0 ? kLength : run.length;
}

// kRows rows from row i of the group on.
template <int kVectors, int kRows, int kLength, bool kFirst>
HWY_INLINE void product_rows(const Run& run, int64_t i) {
  const int64_t length = length_of<kLength>(run);
  Vector acc[kRows][kVectors];
  char* y[kRows];
  const uint16_t* offsets[kRows];
  const float* values[kRows];
  for (int r = 0; r < kRows; ++r) {
    const uint32_t row = run.rows[i + r];
    y[r] = run.y + row * kSlabRowBytes;
    offsets[r] = run.offsets + (i + r) * length;
    values[r] = run.values + (i + r) * length;
    const char* ahead = run.y + run.rows[i + r + 2 * kRows] * kSlabRowBytes;
    for (int v = 0; v < kVectors * kVectorBytes; v += 64) __builtin_prefetch(ahead + v, 1);
    if (run.next_slab != 0) {
      for (int v = 0; v < kSlabRowBytes; v += 64)
        __builtin_prefetch(y[r] + run.next_slab + v, 1, 2);
    }
    if constexpr (kFirst) {
      const Vector start = hn::Set(Floats(), run.bias == nullptr ? 0.0f : run.bias[row]);
      for (int v = 0; v < kVectors; ++v) acc[r][v] = start;
    } else {
      for (int v = 0; v < kVectors; ++v) acc[r][v] = load(y[r], v);
    }
  }
  uint64_t words[kRows];
  Vector quads[kRows];
  const auto fetch = [&](int64_t at) HWY_ATTR {
    for (int r = 0; r < kRows; ++r) {
      words[r] = packed(offsets[r] + at);
      quads[r] = hn::LoadDup128(Floats(), values[r] + at);
    }
  };
  const auto four = [&](int64_t at) HWY_ATTR {
    fetch(at);
    multiply_add<0>(run.x, words, quads, acc);
    multiply_add<1>(run.x, words, quads, acc);
    multiply_add<2>(run.x, words, quads, acc);
    multiply_add<3>(run.x, words, quads, acc);
  };
  const auto rest = [&](int64_t at, int64_t count) HWY_ATTR {
    if (count == 0) return;
    fetch(at);
    multiply_add<0>(run.x, words, quads, acc);
    if (count > 1) multiply_add<1>(run.x, words, quads, acc);
    if (count > 2) multiply_add<2>(run.x, words, quads, acc);
  };
  if constexpr (kLength >= 0) {
    HWY_UNROLL(8)
    for (int64_t at = 0; at < kLength / 4 * 4; at += 4) four(at);
    rest(kLength / 4 * 4, kLength % 4);
  } else {
    const int64_t whole = length / 4 * 4;
    for (int64_t at = 0; at < whole; at += 4) four(at);
    rest(whole, -1 - kLength);
  }
  for (int r = 0; r < kRows; ++r) {
    for (int v = 0; v < kVectors; ++v) store(acc[r][v], y[r], v);
  }
}

// kLength: nonzeros of each row, or −1 − (length % 4).
template <int kVectors, int kLength, bool kFirst>
HWY_NOINLINE void product_group(const Run& run) {
  constexpr int kRows = kVectors <= 4 ? 2 : 1;
  int64_t i = 0;
  const char* ahead = run.ahead;
  for (; i + kRows <= run.count; i += kRows) {
    for (int64_t line = 0; line < run.ahead_lines; ++line, ahead += 64) {
      __builtin_prefetch(ahead, 0, 2);
    }
    product_rows<kVectors, kRows, kLength, kFirst>(run, i);
  }
  if constexpr (kRows > 1) {
    for (; i < run.count; ++i) product_rows<kVectors, 1, kLength, kFirst>(run, i);
  }
}

template <int kVectors, int kCount>
HWY_INLINE Vector block_sums(const Vector (&dy)[kVectors], const char* x, const uint16_t* offsets) {
  const uint64_t word = packed(offsets);
  const Vector zero = hn::Zero(Floats());
  const Vector a = dot(dy, x + row_offset<0>(word));
  const Vector b = kCount > 1 ? dot(dy, x + row_offset<1>(word)) : zero;
  const Vector c = kCount > 2 ? dot(dy, x + row_offset<2>(word)) : zero;
  const Vector d = kCount > 3 ? dot(dy, x + row_offset<3>(word)) : zero;
  return block_sums_of(a, b, c, d);
}

template <int kVectors, int kCount, bool kAdd>
HWY_INLINE void gradient_of(const Vector (&dy)[kVectors], const char* x, const uint16_t* offsets,
                            float* gradient) {
  put<kCount, kAdd>(add_blocks(block_sums<kVectors, kCount>(dy, x, offsets)), gradient);
}

// Eight nonzeros.
template <int kVectors, bool kAdd>
HWY_INLINE void gradient_of_eight(const Vector (&dy)[kVectors], const char* x,
                                  const uint16_t* offsets, float* gradient) {
#if HWY_TARGET == HWY_AVX3 || HWY_TARGET == HWY_AVX3_DL
  const hn::Half<Floats> half;
  auto sums = add_blocks_of_two(block_sums<kVectors, 4>(dy, x, offsets),
                                block_sums<kVectors, 4>(dy, x, offsets + 4));
  if constexpr (kAdd) sums = hn::Add(sums, hn::LoadU(half, gradient));
  hn::StoreU(sums, half, gradient);
#else
  gradient_of<kVectors, 4, kAdd>(dy, x, offsets, gradient);
  gradient_of<kVectors, 4, kAdd>(dy, x, offsets + 4, gradient + 4);
#endif
}

template <int kVectors, int kLength, bool kAdd>
HWY_NOINLINE void gradient_group(const Run& run) {
  const int64_t length = length_of<kLength>(run), whole = length / 4 * 4;
  constexpr int kRest = kLength >= 0 ? kLength % 4 : -1 - kLength;
  const char* ahead_x = run.ahead;
  for (int64_t i = 0; i < run.count; ++i) {
    if (i % 2 == 0) {
      for (int64_t line = 0; line < run.ahead_lines; ++line, ahead_x += 64) {
        __builtin_prefetch(ahead_x, 0, 2);
      }
    }
    const char* at = run.y + run.rows[i] * kSlabRowBytes;
    const char* ahead = run.y + run.rows[i + 2] * kSlabRowBytes;
    for (int v = 0; v < kVectors * kVectorBytes; v += 64) __builtin_prefetch(ahead + v);
    if (run.next_slab != 0) {
      for (int v = 0; v < kSlabRowBytes; v += 64) __builtin_prefetch(at + run.next_slab + v, 0, 2);
    }
    Vector dy[kVectors];
    for (int v = 0; v < kVectors; ++v) dy[v] = load(at, v);
    const uint16_t* offsets = run.offsets + i * length;
    float* gradient = run.gradient + i * length;
    int64_t k = 0;
    if constexpr (kLength >= 0) {
      HWY_UNROLL(4)
      for (; k + 8 <= kLength; k += 8) {
        gradient_of_eight<kVectors, kAdd>(dy, run.x, offsets + k, gradient + k);
      }
    } else {
      for (; k + 8 <= length; k += 8) {
        gradient_of_eight<kVectors, kAdd>(dy, run.x, offsets + k, gradient + k);
      }
    }
    if (k + 4 <= length) gradient_of<kVectors, 4, kAdd>(dy, run.x, offsets + k, gradient + k);
    if constexpr (kRest > 0) {
      gradient_of<kVectors, kRest, kAdd>(dy, run.x, offsets + whole, gradient + whole);
    }
  }
}

// Loops are unrolled for rows of up to so many nonzeros, in whole slabs.
constexpr int kUnrolled = HWY_TARGET <= HWY_AVX2 ? 24 : 0;

using GroupFunction = void (*)(const Run&);

template <template <int, int, bool> class Kernel, int kVectors, bool kFlag, int... lengths>
GroupFunction choose_unrolled(int64_t length, std::integer_sequence<int, lengths...>) {
  static constexpr GroupFunction table[] = {Kernel<kVectors, lengths, kFlag>::run...};
  return table[length];
}

template <template <int, int, bool> class Kernel, int kVectors, bool kFlag>
GroupFunction choose(int64_t length) {
  if constexpr (kVectors == kPass && kUnrolled > 0) {
    if (length <= kUnrolled) {
      return choose_unrolled<Kernel, kVectors, kFlag>(
          length, std::make_integer_sequence<int, kUnrolled + 1>());
    }
  }
  switch (length % 4) {
    case 0:
      return Kernel<kVectors, -1, kFlag>::run;
    case 1:
      return Kernel<kVectors, -2, kFlag>::run;
    case 2:
      return Kernel<kVectors, -3, kFlag>::run;
    default:
      return Kernel<kVectors, -4, kFlag>::run;
  }
}

template <int kVectors, int kLength, bool kFirst>
struct Product {
  static void run(const Run& r) { product_group<kVectors, kLength, kFirst>(r); }
};
template <int kVectors, int kLength, bool kAdd>
struct Gradient {
  static void run(const Run& r) { gradient_group<kVectors, kLength, kAdd>(r); }
};

// Runs the groups of a block over one slab of `width` examples, a pass of columns at a time:
// `group(run, is_first_tile)`.
template <class Group>
HWY_INLINE void for_each_group(const CsrStream& s, const CsrBlock& block, Run run,
                               const Group& group) {
  const char* x = run.x;
  const float* values = run.values;
  float* gradient = run.gradient;
  const int64_t next_slab = run.next_slab;
  for (int64_t t = block.first_tile; t < block.end_tile; ++t) {
    const CsrTile& tile = s.tiles[static_cast<size_t>(t)];
    run.x = x + tile.first_column * kSlabRowBytes;
    // What follows in memory is the block's next tile, or the next slab's first one, which all
    // blocks share.
    const bool is_last = t + 1 == block.end_tile;
    const int64_t pairs = (is_last ? s.rows : block.end_row - block.first_row) / 2 + 1;
    run.next_slab = is_last ? next_slab : 0;
    run.ahead_lines =
        is_last && next_slab == 0 ? 0 : (s.tile_columns * kSlabRowBytes / 64 + pairs - 1) / pairs;
    const char* ahead = run.x + s.tile_columns * kSlabRowBytes +
                        (is_last ? block.first_row / 2 * run.ahead_lines * 64 : 0);
    for (int64_t g = tile.first_group; g < tile.end_group; ++g) {
      const CsrGroup& at = s.groups[static_cast<size_t>(g)];
      run.rows = s.rows_in_order.data() + at.first_row;
      run.offsets = s.offsets.data() + at.first_value;
      run.values = values == nullptr ? nullptr : values + at.first_value;
      run.gradient = gradient == nullptr ? nullptr : gradient + at.first_value;
      run.count = at.rows;
      run.length = at.length;
      run.ahead = ahead;
      ahead += at.rows / 2 * run.ahead_lines * 64;
      group(run, tile.first_column == 0);
    }
  }
}

void product_block(const CsrStream& s, const CsrBlock& block, const float* values, const float* x,
                   int64_t width, const float* bias, float* y, bool prefetch_next) {
  const int64_t next_slab = prefetch_next ? s.rows * kSlabRowBytes : 0;
  for (int64_t c = 0; c < width; c += kPass * kLanes) {
    with_vectors(width - c, [&]<int n>(Vectors<n>) HWY_ATTR {
      const Run run{.x = reinterpret_cast<const char*>(x + c),
                    .y = reinterpret_cast<char*>(y + c),
                    .bias = bias,
                    .values = values,
                    .next_slab = next_slab};
      for_each_group(s, block, run, [](const Run& r, bool is_first) HWY_ATTR {
        (is_first ? choose<Product, n, true>(r.length) : choose<Product, n, false>(r.length))(r);
      });
    });
  }
}

void gradient_block(const CsrStream& s, const CsrBlock& block, const float* dy, const float* x,
                    int64_t width, bool accumulate, float* gradient, bool prefetch_next) {
  const int64_t next_slab = prefetch_next ? s.rows * kSlabRowBytes : 0;
  for (int64_t c = 0; c < width; c += kPass * kLanes) {
    with_vectors(width - c, [&]<int n>(Vectors<n>) HWY_ATTR {
      const Run run{.x = reinterpret_cast<const char*>(x + c),
                    .y = const_cast<char*>(reinterpret_cast<const char*>(dy + c)),
                    .gradient = gradient,
                    .next_slab = next_slab};
      const bool add = accumulate || c > 0;
      for_each_group(s, block, run, [add](const Run& r, bool) HWY_ATTR {
        if (r.length == 0) return;
        (add ? choose<Gradient, n, true>(r.length) : choose<Gradient, n, false>(r.length))(r);
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

}  // namespace

void csr_product(const CsrStream& s, const float* values, const float* x, int64_t batch,
                 const float* bias, float* y) {
  const auto run =
      use_reference_kernels() ? reference::csr_product_block : HWY_DYNAMIC_DISPATCH(product_block);
  const int64_t slabs = slab_count(batch);
  const bool is_large = slabs_exceed_cache(s.rows, s.columns, slabs);
  const auto blocks = static_cast<int64_t>(s.blocks.size());
  parallel_blocks(slabs * blocks, [&](int64_t unit) {
    const int64_t slab = unit / blocks;
    run(s, s.blocks[static_cast<size_t>(unit % blocks)], values, x + slab * s.columns * kSlabWidth,
        std::min(kSlabWidth, batch - slab * kSlabWidth), bias, y + slab * s.rows * kSlabWidth,
        is_large && slab + 1 < slabs);
  });
}

void csr_gradient(const CsrStream& s, const float* dy, const float* x, int64_t batch,
                  bool accumulate, float* gradient) {
  if (batch == 0 && !accumulate) std::fill_n(gradient, s.nnz, 0.0f);
  const auto run = use_reference_kernels() ? reference::csr_gradient_block
                                           : HWY_DYNAMIC_DISPATCH(gradient_block);
  const int64_t slabs = slab_count(batch);
  const bool is_large = slabs_exceed_cache(s.rows, s.columns, slabs);
  parallel_blocks(static_cast<int64_t>(s.blocks.size()), [&](int64_t block) {
    for (int64_t slab = 0; slab < slabs; ++slab) {
      run(s, s.blocks[static_cast<size_t>(block)], dy + slab * s.rows * kSlabWidth,
          x + slab * s.columns * kSlabWidth, std::min(kSlabWidth, batch - slab * kSlabWidth),
          accumulate || slab > 0, gradient, is_large && slab + 1 < slabs);
    }
  });
}

void gather(std::span<const float> from, std::span<const uint32_t> place, std::span<float> into) {
  parallel_for(static_cast<int64_t>(into.size()), 1 << 14, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      into[static_cast<size_t>(i)] = from[place[static_cast<size_t>(i)]];
    }
  });
}

}  // namespace lacuna
#endif  // HWY_ONCE
