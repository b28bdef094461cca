// The N:M product over batch slabs, similar to csr.cpp, with fewer loads of indices.
//
// All rows of a tile have slots in the same groups of columns. So two rows share the pointers to a
// group's activations, and a value adds only its code to them: for 2:4, one byte of codes serves
// four values. Zen 4 does one 64-byte load and one multiply-add per cycle; both rows take 32 of
// each for four slots, which hide all other instructions.
#include "lacuna/framework/kernels/nm/nm.hpp"

#include <algorithm>

#include "lacuna/framework/core/parallel.h"
#include "lacuna/framework/kernels/instruction_set.hpp"
#include "lacuna/framework/kernels/nm/nm_reference.hpp"
#include "lacuna/framework/kernels/simd/processor.hpp"
#include "lacuna/framework/kernels/simd/slab.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "lacuna/framework/kernels/nm/nm.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "lacuna/framework/kernels/nm/nm_run.inc"

HWY_BEFORE_NAMESPACE();
namespace lacuna::HWY_NAMESPACE {
namespace {

#if HWY_TARGET == HWY_SCALAR
void product_block(const NmMatrix& s, int64_t begin, int64_t end, const float* values,
                   const float* x, int64_t width, const float* bias, float* y, bool) {
  reference::nm_product_block(s, begin, end, values, x, width, bias, y, false);
}
#else

// acc[r] += value · x for entry `i` of four in each of the rows.
template <class Code, int i, int kVectors, int kRows, bool kByLoads>
HWY_INLINE void multiply_add(const char* x, int64_t group_bytes, const uint64_t (&words)[kRows],
                             const FourValues<kByLoads> (&values)[kRows],
                             Vector (&acc)[kRows][kVectors]) {
  for (int r = 0; r < kRows; ++r) {
    const Vector value = values[r].template spread<i>();
    const char* row = row_of<Code, i>(x, group_bytes, words[r]);
    for (int v = 0; v < kVectors; ++v) acc[r][v] = hn::MulAdd(value, load(row, v), acc[r][v]);
  }
}

// Processes kRows rows from row i on.
template <class Code, int kVectors, int kRows, bool kByLoads>
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
  FourValues<kByLoads> quads[kRows];
  const auto fetch = [&](int64_t at) HWY_ATTR {
    for (int r = 0; r < kRows; ++r) {
      words[r] = Code::word(codes[r] + at / 4 * Code::kBytesOfFour);
      quads[r].begin_at(values[r] + at);
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

// Several independent sums hide the latency of a multiply-add.
template <class Code, int kVectors, bool kByLoads>
HWY_NOINLINE void product_tile(const NmRun& run) {
  constexpr int kRows = kVectors == 1 ? 4 : kVectors <= 4 ? 2 : 1;
  const char* ahead = run.ahead;
  int64_t i = run.begin;
  for (; i + kRows <= run.end; i += kRows) {
    ask_ahead(run, ahead);
    product_rows<Code, kVectors, kRows, kByLoads>(run, i);
  }
  if constexpr (kRows > 1) {
    for (; i < run.end; ++i) product_rows<Code, kVectors, 1, kByLoads>(run, i);
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
        with_spread([&](auto by_loads) HWY_ATTR {
          for_each_tile(s, {0, s.form.tiles()}, run, product_tile<Code, n, by_loads.value>);
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

}  // namespace

void nm_product(const NmMatrix& s, const float* values, const float* x, int64_t batch,
                const float* bias, float* y) {
  const auto run =
      use_reference_kernels() ? reference::nm_product_block : HWY_DYNAMIC_DISPATCH(product_block);
  const NmMatrixForm& form = s.form;
  const int64_t rows = form.rows_of_block(), blocks = (form.rows + rows - 1) / rows;
  const bool is_large = slabs_exceed_cache(form.rows, form.columns, slab_count(batch));
  for_each_slab_part(batch, blocks, [&](int64_t slab, int64_t block, int64_t width, bool has_next) {
    const int64_t begin = block * rows;
    run(s, begin, std::min(begin + rows, form.rows), values, x + slab * form.columns * kSlabWidth,
        width, bias, y + slab * form.rows * kSlabWidth, is_large && has_next);
  });
}

void nm_product_part(const NmMatrix& s, const float* values, int64_t begin, int64_t end,
                     const float* x, int64_t batch, float* y) {
  const auto run =
      use_reference_kernels() ? reference::nm_product_block : HWY_DYNAMIC_DISPATCH(product_block);
  run(s, begin, end, values, x, batch, nullptr, y - begin * kSlabWidth, false);
}

}  // namespace lacuna
#endif  // HWY_ONCE
