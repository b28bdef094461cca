// The N:M products for batches of a few examples, row-major: see nm.h. Scalar code, compiled for
// each instruction set for its fused multiply-add.
#include <algorithm>

#include "lacuna/framework/core/parallel.h"
#include "lacuna/framework/kernels/instruction_set.h"
#include "lacuna/framework/kernels/nm.h"
#include "lacuna/framework/kernels/nm_reference.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "lacuna/framework/kernels/nm_rows.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "lacuna/framework/kernels/nm_loop.inc"

HWY_BEFORE_NAMESPACE();
namespace lacuna::HWY_NAMESPACE {
namespace {

// The slots of one row in one tile.
struct NmRow {
  const uint8_t* codes = nullptr;
  int64_t slots = 0;
  int64_t m = 0, fours = 0;  // columns of a group, and fours of its slots
};

// Calls `four(slot, columns[4])` for each four slots, and `one(slot, column)` for what is left.
template <class Code, class Four, class One>
HWY_INLINE void for_each_column(const NmRow& row, const Four& four, const One& one) {
  int64_t group = 0, left = row.fours, at = 0;
  const auto columns_at = [&](int64_t(&columns)[4]) HWY_ATTR {
    const uint64_t word = Code::word(row.codes + at / 4 * Code::kBytesOfFour);
    columns[0] = group + Code::template column<0, 0>(word);
    columns[1] = group + Code::template column<1, 0>(word) + Code::kGroups / 4 * row.m;
    columns[2] = group + Code::template column<2, 0>(word) + Code::kGroups / 2 * row.m;
    columns[3] = group + Code::template column<3, 0>(word) + 3 * Code::kGroups / 4 * row.m;
  };
  for (; at + 4 <= row.slots; at += 4) {
    int64_t columns[4];
    columns_at(columns);
    four(at, columns);
    if (Code::kSlots < 4 || --left == 0) {
      group += Code::kGroups * row.m;
      left = row.fours;
    }
  }
  if (at == row.slots) return;
  int64_t columns[4];
  columns_at(columns);
  for (int64_t i = 0; at + i < row.slots; ++i) one(at + i, columns[i]);
}

// Four sums side by side hide the latency of an addition.
template <class Code>
HWY_INLINE float dot(const NmRow& row, const float* values, const float* x) {
  float a = 0.0f, b = 0.0f, c = 0.0f, d = 0.0f;
  for_each_column<Code>(
      row,
      [&](int64_t at, const int64_t(&columns)[4]) HWY_ATTR {
        a += values[at] * x[columns[0]];
        b += values[at + 1] * x[columns[1]];
        c += values[at + 2] * x[columns[2]];
        d += values[at + 3] * x[columns[3]];
      },
      [&](int64_t at, int64_t column) HWY_ATTR { a += values[at] * x[column]; });
  return (a + b) + (c + d);
}

template <class Code, bool kAdd>
HWY_INLINE void scaled(const NmRow& row, float factor, const float* x, float* gradient) {
  const auto one = [&](int64_t at, int64_t column) HWY_ATTR {
    const float product = factor * x[column];
    gradient[at] = kAdd ? gradient[at] + product : product;
  };
  for_each_column<Code>(
      row,
      [&](int64_t at, const int64_t(&columns)[4]) HWY_ATTR {
        for (int i = 0; i < 4; ++i) one(at + i, columns[i]);
      },
      one);
}

// The loop over rows [begin, end): `body(row, its number, first slot, first column)`.
template <class Body>
HWY_INLINE void for_each_row(const NmMatrix& s, int64_t begin, int64_t end, const Body& body) {
  for (int64_t t = 0; t < s.form.tiles(); ++t) {
    const NmTile tile = s.form.tile(t);
    for (int64_t r = begin; r < end; ++r) {
      const NmRow row{.codes = s.codes.data() + tile.first_code + r * tile.code_bytes,
                      .slots = tile.slots,
                      .m = s.form.m,
                      .fours = s.form.slots() / 4};
      body(row, r, tile.first_slot + r * tile.slots, tile.first_column);
    }
  }
}

void product_block_rows(const NmMatrix& s, int64_t begin, int64_t end, const float* values,
                        const float* x, int64_t batch, const float* bias, float* y) {
  with_code(s.form, [&]<class Code>(Code) HWY_ATTR {
    for (int64_t example = 0; example < batch; ++example) {
      const float* in = x + example * s.form.columns;
      float* out = y + example * s.form.rows;
      for_each_row(s, begin, end,
                   [&](const NmRow& row, int64_t r, int64_t slot, int64_t column) HWY_ATTR {
                     const float start = column > 0 ? out[r] : bias == nullptr ? 0.0f : bias[r];
                     out[r] = start + dot<Code>(row, values + slot, in + column);
                   });
    }
  });
}

void gradient_block_rows(const NmMatrix& s, int64_t begin, int64_t end, const float* dy,
                         const float* x, int64_t batch, bool accumulate, float* gradient) {
  with_code(s.form, [&]<class Code>(Code) HWY_ATTR {
    for (int64_t example = 0; example < batch; ++example) {
      const float* in = x + example * s.form.columns;
      const float* factors = dy + example * s.form.rows;
      const bool add = accumulate || example > 0;
      for_each_row(s, begin, end,
                   [&](const NmRow& row, int64_t r, int64_t slot, int64_t column) HWY_ATTR {
                     float* into = gradient + slot;
                     if (add) return scaled<Code, true>(row, factors[r], in + column, into);
                     scaled<Code, false>(row, factors[r], in + column, into);
                   });
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

void nm_product_rows(const NmMatrix& s, const float* values, const float* x, int64_t batch,
                     const float* bias, float* y) {
  const auto run = use_reference_kernels() ? reference::nm_product_block_rows
                                           : HWY_DYNAMIC_DISPATCH(product_block_rows);
  parallel_for(s.form.rows, s.form.rows_of_block(),
               [&](int64_t begin, int64_t end) { run(s, begin, end, values, x, batch, bias, y); });
}

void nm_gradient_rows(const NmMatrix& s, const float* dy, const float* x, int64_t batch,
                      bool accumulate, float* gradient) {
  if (batch == 0 && !accumulate) std::fill_n(gradient, s.form.stored(), 0.0f);
  const auto run = use_reference_kernels() ? reference::nm_gradient_block_rows
                                           : HWY_DYNAMIC_DISPATCH(gradient_block_rows);
  parallel_for(s.form.rows, s.form.rows_of_block(), [&](int64_t begin, int64_t end) {
    run(s, begin, end, dy, x, batch, accumulate, gradient);
  });
  for (const uint32_t slot : s.unused) gradient[slot] = 0.0f;
}

}  // namespace lacuna
#endif  // HWY_ONCE
