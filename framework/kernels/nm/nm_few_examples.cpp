// The N:M products for batches of a few examples, row-major: see nm.hpp.
//
// Most formats load their inputs by lookups (nm_lookup.inc). Others run scalar code, compiled for
// each instruction set for its fused multiply-add.
#include <algorithm>

#include "lacuna/framework/core/parallel.h"
#include "lacuna/framework/kernels/instruction_set.hpp"
#include "lacuna/framework/kernels/nm/nm.hpp"
#include "lacuna/framework/kernels/nm/nm_reference.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "lacuna/framework/kernels/nm/nm_few_examples.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "lacuna/framework/kernels/nm/nm_lookup.inc"

HWY_BEFORE_NAMESPACE();
namespace lacuna::HWY_NAMESPACE {
namespace {

// The slots of a row that fill vectors: adds their products to `sum`, and returns their number.
template <class Take>
HWY_INLINE int64_t dot_row(const NmRow& row, const Take& take, const float* values, const float* x,
                           float& sum) {
  Vector total = hn::Zero(Floats());
  int64_t at = 0;
  for (; at + kLookupLanes <= row.slots; at += kLookupLanes) {
    total = hn::MulAdd(hn::LoadU(Floats(), values + at), take(row, at, x), total);
  }
  sum += hn::GetLane(hn::SumOfLanes(Floats(), total));
  return at;
}

// The same for the weight gradient: writes it, or adds to it.
template <bool kAdd, class Take>
HWY_INLINE int64_t scale(const NmRow& row, const Take& take, float factor, const float* x,
                         float* gradient) {
  const Vector factors = hn::Set(Floats(), factor);
  int64_t at = 0;
  for (; at + kLookupLanes <= row.slots; at += kLookupLanes) {
    const Vector before = kAdd ? hn::LoadU(Floats(), gradient + at) : hn::Zero(Floats());
    hn::StoreU(hn::MulAdd(factors, take(row, at, x), before), Floats(), gradient + at);
  }
  return at;
}

template <class Code, int kParts>
void product_by_rows(const NmMatrix& s, int64_t begin, int64_t end, const float* values,
                     const float* x, const float* bias, float* y) {
  with_lookup<Code, kParts>(s.form, [&](const auto& take) HWY_ATTR {
    for_each_row(s, begin, end,
                 [&](const NmRow& row, int64_t r, int64_t slot, int64_t column) HWY_ATTR {
                   const float start = column > 0 ? y[r] : bias == nullptr ? 0.0f : bias[r];
                   float sums[4] = {};  // several sums hide the latency of an addition
                   int64_t done = 0;
                   if constexpr (kParts > 0)
                     done = dot_row(row, take, values + slot, x + column, sums[0]);
                   for_each_column<Code>(row, done, [&](int64_t at, int64_t c) HWY_ATTR {
                     sums[at % 4] += values[slot + at] * x[column + c];
                   });
                   y[r] = start + ((sums[0] + sums[1]) + (sums[2] + sums[3]));
                 });
  });
}

template <class Code, int kParts, bool kAdd>
void gradient_by_rows(const NmMatrix& s, int64_t begin, int64_t end, const float* dy,
                      const float* x, float* gradient) {
  with_lookup<Code, kParts>(s.form, [&](const auto& take) HWY_ATTR {
    for_each_row(s, begin, end,
                 [&](const NmRow& row, int64_t r, int64_t slot, int64_t column) HWY_ATTR {
                   float* into = gradient + slot;
                   int64_t done = 0;
                   if constexpr (kParts > 0) done = scale<kAdd>(row, take, dy[r], x + column, into);
                   for_each_column<Code>(row, done, [&](int64_t at, int64_t c) HWY_ATTR {
                     const float product = dy[r] * x[column + c];
                     into[at] = kAdd ? into[at] + product : product;
                   });
                 });
  });
}

void product_block_rows(const NmMatrix& s, int64_t begin, int64_t end, const float* values,
                        const float* x, int64_t batch, const float* bias, float* y) {
  with_parts(s.form, [&]<class Code, int n>(Code, Parts<n>) HWY_ATTR {
    for (int64_t example = 0; example < batch; ++example) {
      product_by_rows<Code, n>(s, begin, end, values, x + example * s.form.columns, bias,
                               y + example * s.form.rows);
    }
  });
}

void gradient_block_rows(const NmMatrix& s, int64_t begin, int64_t end, const float* dy,
                         const float* x, int64_t batch, bool accumulate, float* gradient) {
  with_parts(s.form, [&]<class Code, int n>(Code, Parts<n>) HWY_ATTR {
    for (int64_t example = 0; example < batch; ++example) {
      const float* out = dy + example * s.form.rows;
      const float* in = x + example * s.form.columns;
      if (accumulate || example > 0) {
        gradient_by_rows<Code, n, true>(s, begin, end, out, in, gradient);
      } else {
        gradient_by_rows<Code, n, false>(s, begin, end, out, in, gradient);
      }
    }
  });
}

}  // namespace
}  // namespace lacuna::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace lacuna {
namespace {

HWY_EXPORT(product_block_rows);
HWY_EXPORT(gradient_block_rows);

}  // namespace

void nm_product_row_major(const NmMatrix& s, const float* values, const float* x, int64_t batch,
                          const float* bias, float* y) {
  const auto run = use_reference_kernels() ? reference::nm_product_block_rows
                                           : HWY_DYNAMIC_DISPATCH(product_block_rows);
  parallel_for(s.form.rows, s.form.rows_of_block(),
               [&](int64_t begin, int64_t end) { run(s, begin, end, values, x, batch, bias, y); });
}

void nm_gradient_row_major(const NmMatrix& s, const float* dy, const float* x, int64_t batch,
                           Accumulate accumulate, float* gradient) {
  const bool adds = accumulate == Accumulate::Yes;
  if (batch == 0 && !adds) std::fill_n(gradient, s.form.stored(), 0.0f);
  const auto run = use_reference_kernels() ? reference::nm_gradient_block_rows
                                           : HWY_DYNAMIC_DISPATCH(gradient_block_rows);
  parallel_for(s.form.rows, s.form.rows_of_block(), [&](int64_t begin, int64_t end) {
    run(s, begin, end, dy, x, batch, adds, gradient);
  });
  for (const uint32_t slot : s.unused) gradient[slot] = 0.0f;
}

}  // namespace lacuna
#endif  // HWY_ONCE
