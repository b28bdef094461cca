// The product over batch slabs. docs/development/kernels.md explains what makes it fast.
//
// Loads are the bottleneck: next to a 64-byte load of activations, even a 4-byte index costs half
// a cycle. So one 64-bit load reads four offsets. On cores that load one vector per cycle, one
// 16-byte load reads four values, which is replicated to all lanes and spread by in-lane
// permutes.
#include "lacuna/framework/kernels/csr/csr.hpp"

#include <algorithm>
#include <utility>

#include "lacuna/framework/core/parallel.h"
#include "lacuna/framework/kernels/csr/csr_reference.hpp"
#include "lacuna/framework/kernels/instruction_set.hpp"
#include "lacuna/framework/kernels/simd/processor.hpp"
#include "lacuna/framework/kernels/simd/slab.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "lacuna/framework/kernels/csr/csr.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "lacuna/framework/kernels/csr/csr_run.inc"

HWY_BEFORE_NAMESPACE();
namespace lacuna::HWY_NAMESPACE {
namespace {

#if HWY_TARGET == HWY_SCALAR
void product_block(const CsrStream& s, const CsrBlock& block, const float* values, const float* x,
                   int64_t width, const float* bias, float* y, bool) {
  reference::csr_product_block(s, block, values, x, width, bias, y, false);
}
#else

// The outputs of some rows of a group.
template <int kVectors, int kRows>
struct Outputs {
  Vector sums[kRows][kVectors];
  char* at[kRows];

  // Begins row i of the group and the rows after it: with the bias, or with earlier sums.
  template <bool kFirst>
  HWY_INLINE void begin(const Run& run, int64_t i) {
    for (int r = 0; r < kRows; ++r) {
      const uint32_t row = run.rows[i + r];
      at[r] = run.y + row * kSlabRowBytes;
      const char* ahead = run.y + run.rows[i + r + 2 * kRows] * kSlabRowBytes;
      for (int v = 0; v < kVectors * kVectorBytes; v += 64) __builtin_prefetch(ahead + v, 1);
      if (run.next_slab != 0) {
        for (int v = 0; v < kSlabRowBytes; v += 64)
          __builtin_prefetch(at[r] + run.next_slab + v, 1, 2);
      }
      if constexpr (kFirst) {
        const Vector start = hn::Set(Floats(), run.bias == nullptr ? 0.0f : run.bias[row]);
        for (int v = 0; v < kVectors; ++v) sums[r][v] = start;
      } else {
        for (int v = 0; v < kVectors; ++v) sums[r][v] = load(at[r], v);
      }
    }
  }
  HWY_INLINE void end() const {
    for (int r = 0; r < kRows; ++r) {
      for (int v = 0; v < kVectors; ++v) store(sums[r][v], at[r], v);
    }
  }
};

// The nonzeros of some rows of a group, each in its own columns, four per row at a time.
template <int kVectors, int kRows, bool kByLoads>
struct Nonzeros {
  const char* x;
  const uint16_t* offsets[kRows];
  const float* values[kRows];
  uint64_t words[kRows];
  FourValues<kByLoads> fours[kRows];

  HWY_INLINE void fetch(int64_t at) {
    for (int r = 0; r < kRows; ++r) {
      words[r] = packed(offsets[r] + at);
      fours[r].begin_at(values[r] + at);
    }
  }
  // sums[r] += value · x for entry `i` of the four in each row.
  template <int i>
  HWY_INLINE void multiply_add(Vector (&sums)[kRows][kVectors]) const {
    for (int r = 0; r < kRows; ++r) {
      const Vector value = fours[r].template spread<i>();
      const char* row = x + row_offset<i>(words[r]);
      for (int v = 0; v < kVectors; ++v) sums[r][v] = hn::MulAdd(value, load(row, v), sums[r][v]);
    }
  }

  // The same if all rows have the columns of the first row.
  template <int i>
  HWY_INLINE void multiply_add_shared(Vector (&sums)[kRows][kVectors]) const {
    const char* row = x + row_offset<i>(words[0]);
    Vector values_of[kRows];
    for (int r = 0; r < kRows; ++r) values_of[r] = fours[r].template spread<i>();
    for (int v = 0; v < kVectors; ++v) {
      Vector z = load(row, v);
      keep_in_register(z);
      for (int r = 0; r < kRows; ++r) sums[r][v] = hn::MulAdd(values_of[r], z, sums[r][v]);
    }
  }

  HWY_INLINE void four_shared(int64_t at, Vector (&sums)[kRows][kVectors]) {
    fetch(at);
    multiply_add_shared<0>(sums);
    multiply_add_shared<1>(sums);
    multiply_add_shared<2>(sums);
    multiply_add_shared<3>(sums);
  }
  HWY_INLINE void four(int64_t at, Vector (&sums)[kRows][kVectors]) {
    fetch(at);
    multiply_add<0>(sums);
    multiply_add<1>(sums);
    multiply_add<2>(sums);
    multiply_add<3>(sums);
  }
  // Fewer than four nonzeros.
  HWY_INLINE void rest(int64_t at, int64_t count, Vector (&sums)[kRows][kVectors]) {
    if (count == 0) return;
    fetch(at);
    multiply_add<0>(sums);
    if (count > 1) multiply_add<1>(sums);
    if (count > 2) multiply_add<2>(sums);
  }
};

// Processes kRows rows, from row i of the group on.
template <int kVectors, int kRows, int kLength, bool kFirst, bool kByLoads>
HWY_INLINE void product_rows(const Run& run, int64_t i) {
  const int64_t length = length_of<kLength>(run);
  Outputs<kVectors, kRows> y;
  y.template begin<kFirst>(run, i);
  Nonzeros<kVectors, kRows, kByLoads> nonzeros;
  nonzeros.x = run.x;
  for (int r = 0; r < kRows; ++r) {
    nonzeros.offsets[r] = run.offsets + (i + r) * length;
    nonzeros.values[r] = run.values + (i + r) * length;
  }
  if constexpr (kLength >= 0) {
    HWY_UNROLL(8)
    for (int64_t at = 0; at < kLength / 4 * 4; at += 4) nonzeros.four(at, y.sums);
    nonzeros.rest(kLength / 4 * 4, kLength % 4, y.sums);
  } else {
    const int64_t whole = length / 4 * 4;
    for (int64_t at = 0; at < whole; at += 4) nonzeros.four(at, y.sums);
    nonzeros.rest(whole, -1 - kLength, y.sums);
  }
  y.end();
}

// kLength: nonzeros of each row, or −1 − (length % 4).
template <int kVectors, int kLength, bool kFirst, bool kByLoads>
HWY_NOINLINE void product_group(const Run& run) {
  constexpr int kRows = kVectors <= 4 ? 2 : 1;
  int64_t i = 0;
  const char* ahead = run.ahead;
  for (; i + kRows <= run.count; i += kRows) {
    ask_ahead(run, ahead);
    product_rows<kVectors, kRows, kLength, kFirst, kByLoads>(run, i);
  }
  if constexpr (kRows > 1) {
    for (; i < run.count; ++i) {
      product_rows<kVectors, 1, kLength, kFirst, kByLoads>(run, i);
    }
  }
}

template <bool kByLoads>
struct Product {
  template <int kVectors, int kLength, bool kFirst>
  struct Of {
    static void run(const Run& r) { product_group<kVectors, kLength, kFirst, kByLoads>(r); }
  };
};

// Pairs of rows whose first run.shared nonzeros are in the same columns: each load there serves
// both rows.
template <int kVectors, bool kFirst, bool kByLoads>
HWY_NOINLINE void product_pairs(const Run& run) {
  const int64_t length = run.length, shared = run.shared;
  const int64_t whole = shared + (length - shared) / 4 * 4;
  const char* ahead = run.ahead;
  for (int64_t i = 0; i < run.count; i += 2) {
    ask_ahead(run, ahead);
    Outputs<kVectors, 2> y;
    y.template begin<kFirst>(run, i);
    Nonzeros<kVectors, 2, kByLoads> nonzeros;
    nonzeros.x = run.x;
    for (int r = 0; r < 2; ++r) {
      nonzeros.offsets[r] = run.offsets + (i + r) * length;
      nonzeros.values[r] = run.values + (i + r) * length;
    }
    for (int64_t at = 0; at < shared; at += 4) nonzeros.four_shared(at, y.sums);
    for (int64_t at = shared; at < whole; at += 4) nonzeros.four(at, y.sums);
    nonzeros.rest(whole, length - whole, y.sums);
    y.end();
  }
}

// Registers for two rows' sums, and four vectors of x.
constexpr bool kTakesPairs = kPass <= 4;

template <bool kByLoads>
void product_of_groups(const CsrStream& s, const CsrBlock& block, const Run& run, int64_t columns) {
  // Unrolled loops make Intel's servers no faster (−2 to 2 %), and AMD's cores 4 to 5 %.
  constexpr Loops kLoops = kByLoads ? Loops::Rolled : Loops::Unrolled;
  with_vectors(columns, [&]<int n>(Vectors<n>) HWY_ATTR {
    for_each_group<Pairs::Apart>(s, block, run, [](const Run& r, bool is_first) HWY_ATTR {
      if constexpr (kTakesPairs) {
        if (r.shared > 0) {
          return (is_first ? product_pairs<n, true, kByLoads>
                           : product_pairs<n, false, kByLoads>)(r);
        }
      }
      (is_first ? choose<kLoops, Product<kByLoads>::template Of, n, true>(r.length)
                : choose<kLoops, Product<kByLoads>::template Of, n, false>(r.length))(r);
    });
  });
}

void product_block(const CsrStream& s, const CsrBlock& block, const float* values, const float* x,
                   int64_t width, const float* bias, float* y, bool prefetch_next) {
  const int64_t next_slab = prefetch_next ? s.rows * kSlabRowBytes : 0;
  for (int64_t c = 0; c < width; c += kPass * kLanes) {
    const Run run{.x = reinterpret_cast<const char*>(x + c),
                  .y = reinterpret_cast<char*>(y + c),
                  .bias = bias,
                  .values = values,
                  .next_slab = next_slab};
    with_spread([&](auto by_loads)
                    HWY_ATTR { product_of_groups<by_loads.value>(s, block, run, width - c); });
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

}  // namespace

void csr_product(const CsrStream& s, const float* values, const float* x, int64_t batch,
                 const float* bias, float* y) {
  const auto run =
      use_reference_kernels() ? reference::csr_product_block : HWY_DYNAMIC_DISPATCH(product_block);
  const auto blocks = static_cast<int64_t>(s.blocks.size());
  for_each_slab_part(batch, blocks, [&](int64_t slab, int64_t block, int64_t width, bool has_next) {
    run(s, s.blocks[static_cast<size_t>(block)], values, x + slab * s.columns * kSlabWidth, width,
        bias, y + slab * s.rows * kSlabWidth, has_next);
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
