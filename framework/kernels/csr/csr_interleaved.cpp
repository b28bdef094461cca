// The products for a few interleaved examples: see csr.hpp. Scalar code, compiled for each
// instruction set: the compiler vectorizes the loops over the examples.
#include "lacuna/framework/core/parallel.h"
#include "lacuna/framework/kernels/csr/csr.hpp"
#include "lacuna/framework/kernels/csr/csr_reference.hpp"
#include "lacuna/framework/kernels/instruction_set.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "lacuna/framework/kernels/csr/csr_interleaved.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace lacuna::HWY_NAMESPACE {
namespace {

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

// Interleaved examples: x [columns, kBatch], y [rows, kBatch].
template <int kBatch>
HWY_INLINE void product_block_side_by_side(const CsrStream& s, const CsrBlock& block,
                                           const float* values, const float* x, const float* bias,
                                           float* y) {
  for_each_row(s, block, [&](int64_t row, int64_t value, int64_t length, int64_t column) HWY_ATTR {
    float* out = y + row * kBatch;
    float sum[kBatch];
    for (int e = 0; e < kBatch; ++e) {
      sum[e] = column > 0 ? out[e] : bias == nullptr ? 0.0f : bias[row];
    }
    for (int64_t k = value; k < value + length; ++k) {
      const float* in = x + (column + s.offsets[static_cast<size_t>(k)]) * kBatch;
      for (int e = 0; e < kBatch; ++e) sum[e] += values[k] * in[e];
    }
    for (int e = 0; e < kBatch; ++e) out[e] = sum[e];
  });
}

template <int kBatch>
HWY_INLINE void gradient_block_side_by_side(const CsrStream& s, const CsrBlock& block,
                                            const float* dy, const float* x, bool accumulate,
                                            float* gradient) {
  for_each_row(s, block, [&](int64_t row, int64_t value, int64_t length, int64_t column) HWY_ATTR {
    const float* factor = dy + row * kBatch;
    for (int64_t k = value; k < value + length; ++k) {
      const float* in = x + (column + s.offsets[static_cast<size_t>(k)]) * kBatch;
      float sum = accumulate ? gradient[k] : 0.0f;
      for (int e = 0; e < kBatch; ++e) sum += factor[e] * in[e];
      gradient[k] = sum;
    }
  });
}

// Calls `body(Batch<n>)` for n = batch examples, 2 to 8.
template <int n>
struct Batch {};
template <class Body>
HWY_INLINE void with_batch(int64_t batch, const Body& body) {
  switch (batch) {
    case 2:
      return body(Batch<2>());
    case 3:
      return body(Batch<3>());
    case 4:
      return body(Batch<4>());
    case 5:
      return body(Batch<5>());
    case 6:
      return body(Batch<6>());
    case 7:
      return body(Batch<7>());
    default:
      return body(Batch<8>());
  }
}

void product_block_interleaved(const CsrStream& s, const CsrBlock& block, const float* values,
                               const float* x, int64_t batch, const float* bias, float* y) {
  with_batch(batch, [&]<int n>(Batch<n>)
                        HWY_ATTR { product_block_side_by_side<n>(s, block, values, x, bias, y); });
}

void gradient_block_interleaved(const CsrStream& s, const CsrBlock& block, const float* dy,
                                const float* x, int64_t batch, bool accumulate, float* gradient) {
  with_batch(batch, [&]<int n>(Batch<n>) HWY_ATTR {
    gradient_block_side_by_side<n>(s, block, dy, x, accumulate, gradient);
  });
}

}  // namespace
}  // namespace lacuna::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace lacuna {
namespace {

HWY_EXPORT(product_block_interleaved);
HWY_EXPORT(gradient_block_interleaved);

constexpr int64_t kFeaturesPerTask = 1 << 14;  // when the order changes

}  // namespace

void csr_product_interleaved(const CsrStream& s, const float* values, const float* x, int64_t batch,
                             const float* bias, float* y) {
  const auto run = use_reference_kernels() ? reference::csr_product_block_interleaved
                                           : HWY_DYNAMIC_DISPATCH(product_block_interleaved);
  parallel_blocks(static_cast<int64_t>(s.blocks.size()), [&](int64_t block) {
    run(s, s.blocks[static_cast<size_t>(block)], values, x, batch, bias, y);
  });
}

void csr_gradient_interleaved(const CsrStream& s, const float* dy, const float* x, int64_t batch,
                              Accumulate accumulate, float* gradient) {
  const bool adds = accumulate == Accumulate::Yes;
  const auto run = use_reference_kernels() ? reference::csr_gradient_block_interleaved
                                           : HWY_DYNAMIC_DISPATCH(gradient_block_interleaved);
  parallel_blocks(static_cast<int64_t>(s.blocks.size()), [&](int64_t block) {
    run(s, s.blocks[static_cast<size_t>(block)], dy, x, batch, adds, gradient);
  });
}

void interleave(const float* from, int64_t rows, int64_t columns, float* to) {
  parallel_for(columns, kFeaturesPerTask, [&](int64_t begin, int64_t end) {
    for (int64_t column = begin; column < end; ++column) {
      for (int64_t row = 0; row < rows; ++row) {
        to[column * rows + row] = from[row * columns + column];
      }
    }
  });
}

void separate(const float* from, int64_t rows, int64_t columns, float* to) {
  parallel_for(columns, kFeaturesPerTask, [&](int64_t begin, int64_t end) {
    for (int64_t row = 0; row < rows; ++row) {
      for (int64_t column = begin; column < end; ++column) {
        to[row * columns + column] = from[column * rows + row];
      }
    }
  });
}

}  // namespace lacuna
#endif  // HWY_ONCE
