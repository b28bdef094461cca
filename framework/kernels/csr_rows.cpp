// The products for batches of a few examples, row-major: see csr.h. Scalar code, compiled for each
// instruction set for its fused multiply-add: gather instructions are three times slower where
// processors have had them mended (Sapphire Rapids: 227 µs against 51 for 104 thousand nonzeros).
#include <cstring>

#include "lacuna/framework/core/parallel.h"
#include "lacuna/framework/kernels/csr.h"
#include "lacuna/framework/kernels/csr_reference.h"
#include "lacuna/framework/kernels/instruction_set.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "lacuna/framework/kernels/csr_rows.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace lacuna::HWY_NAMESPACE {
namespace {

// Four sums side by side hide the latency of an addition.
HWY_INLINE float dot(const float* values, const uint16_t* offsets, int64_t length, const float* x) {
  float a = 0.0f, b = 0.0f, c = 0.0f, d = 0.0f;
  int64_t k = 0;
  for (; k + 4 <= length; k += 4) {
    a += values[k] * x[offsets[k]];
    b += values[k + 1] * x[offsets[k + 1]];
    c += values[k + 2] * x[offsets[k + 2]];
    d += values[k + 3] * x[offsets[k + 3]];
  }
  for (; k < length; ++k) a += values[k] * x[offsets[k]];
  return (a + b) + (c + d);
}

// The loop over a block's rows: `row(row, first value, length, tile's x)`.
template <class Row>
HWY_INLINE void for_each_row(const CsrStream& s, const CsrBlock& block, const Row& row) {
  for (int64_t t = block.first_tile; t < block.end_tile; ++t) {
    const CsrTile& tile = s.tiles[static_cast<size_t>(t)];
    for (int64_t g = tile.first_group; g < tile.end_group; ++g) {
      const CsrGroup& group = s.groups[static_cast<size_t>(g)];
      const uint32_t* rows = s.rows_in_order.data() + group.first_row;
      for (int64_t i = 0; i < group.rows; ++i) {
        row(static_cast<int64_t>(rows[i]), group.first_value + i * group.length,
            int64_t{group.length}, tile.first_column);
      }
    }
  }
}

void product_block_rows(const CsrStream& s, const CsrBlock& block, const float* values,
                        const float* x, int64_t batch, const float* bias, float* y) {
  for (int64_t example = 0; example < batch; ++example) {
    const float* in = x + example * s.columns;
    float* out = y + example * s.rows;
    for_each_row(
        s, block, [&](int64_t row, int64_t value, int64_t length, int64_t column) HWY_ATTR {
          const float sum = dot(values + value, s.offsets.data() + value, length, in + column);
          const float start = column > 0 ? out[row] : bias == nullptr ? 0.0f : bias[row];
          out[row] = start + sum;
        });
  }
}

void gradient_block_rows(const CsrStream& s, const CsrBlock& block, const float* dy, const float* x,
                         int64_t batch, bool accumulate, float* gradient) {
  for (int64_t example = 0; example < batch; ++example) {
    const bool add = accumulate || example > 0;
    for_each_row(s, block,
                 [&](int64_t row, int64_t value, int64_t length, int64_t column) HWY_ATTR {
                   const float factor = dy[example * s.rows + row];
                   const float* in = x + example * s.columns + column;
                   const uint16_t* offsets = s.offsets.data() + value;
                   float* into = gradient + value;
                   if (add) {
                     for (int64_t k = 0; k < length; ++k) into[k] += factor * in[offsets[k]];
                   } else {
                     for (int64_t k = 0; k < length; ++k) into[k] = factor * in[offsets[k]];
                   }
                 });
  }
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

void csr_product_rows(const CsrStream& s, const float* values, const float* x, int64_t batch,
                      const float* bias, float* y) {
  const auto run = use_reference_kernels() ? reference::csr_product_block_rows
                                           : HWY_DYNAMIC_DISPATCH(product_block_rows);
  parallel_blocks(static_cast<int64_t>(s.blocks.size()), [&](int64_t block) {
    run(s, s.blocks[static_cast<size_t>(block)], values, x, batch, bias, y);
  });
}

void csr_gradient_rows(const CsrStream& s, const float* dy, const float* x, int64_t batch,
                       bool accumulate, float* gradient) {
  const auto run = use_reference_kernels() ? reference::csr_gradient_block_rows
                                           : HWY_DYNAMIC_DISPATCH(gradient_block_rows);
  parallel_blocks(static_cast<int64_t>(s.blocks.size()), [&](int64_t block) {
    run(s, s.blocks[static_cast<size_t>(block)], dy, x, batch, accumulate, gradient);
  });
}

}  // namespace lacuna
#endif  // HWY_ONCE
