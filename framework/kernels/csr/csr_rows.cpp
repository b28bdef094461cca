// The products of single examples, row-major: see csr.hpp.
//
// Four nonzeros of a row at a time: one 64-bit load for the offsets, four loads for the inputs, one
// load for the values. Gather instructions are slower on processors with mitigations for them
// (Sapphire Rapids: 227 µs instead of 51 for 104 thousand nonzeros).
#include <algorithm>
#include <cstring>
#include <vector>

#include "lacuna/framework/core/parallel.h"
#include "lacuna/framework/kernels/csr/csr.hpp"
#include "lacuna/framework/kernels/csr/csr_reference.hpp"
#include "lacuna/framework/kernels/instruction_set.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "lacuna/framework/kernels/csr/csr_rows.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace lacuna::HWY_NAMESPACE {
namespace {

#if HWY_TARGET == HWY_SCALAR
void product_block_rows(const CsrStream& s, const CsrBlock& block, const float* values,
                        const float* x, int64_t batch, const float* bias, float* y) {
  reference::csr_product_block_rows(s, block, values, x, batch, bias, y);
}
void gradient_block_rows(const CsrStream& s, const CsrBlock& block, const float* dy, const float* x,
                         int64_t batch, bool accumulate, float* gradient) {
  reference::csr_gradient_block_rows(s, block, dy, x, batch, accumulate, gradient);
}
void scatter_block_row(const CsrStream& s, const CsrBlock& block, const float* values,
                       const float* dy, float* dx) {
  reference::csr_scatter_block_row(s, block, values, dy, dx);
}
#else

namespace hn = hwy::HWY_NAMESPACE;
using Quad = hn::FixedTag<float, 4>;
using Four = hn::Vec<Quad>;

// The inputs at the first kCount of four offsets; zeros for the others.
template <int kCount = 4>
HWY_INLINE Four inputs(const float* x, const uint16_t* offsets) {
  typedef float Lanes __attribute__((vector_size(16)));
  uint64_t word;
  std::memcpy(&word, offsets, sizeof word);
  const auto at = [&](int i)
                      HWY_ATTR { return i < kCount ? x[(word >> (16 * i)) & 0xffff] : 0.0f; };
  const Lanes lanes = {at(0), at(1), at(2), at(3)};
  HWY_ALIGN float array[4];
  std::memcpy(array, &lanes, sizeof array);
  return hn::Load(Quad(), array);
}

// Partial sums of a row. kRest: length % 4.
template <int kRest>
HWY_INLINE Four row_sums(const float* values, const uint16_t* offsets, int64_t length,
                         const float* x) {
  const Quad q;
  Four sums = hn::Zero(q);
  const int64_t whole = length - kRest;
  for (int64_t k = 0; k < whole; k += 4) {
    sums = hn::MulAdd(hn::LoadU(q, values + k), inputs(x, offsets + k), sums);
  }
  if constexpr (kRest > 0) {  // without the next row's values, which may be infinite
    const Four rest = hn::IfThenElseZero(hn::FirstN(q, kRest), hn::LoadU(q, values + whole));
    sums = hn::MulAdd(rest, inputs<kRest>(x, offsets + whole), sums);
  }
  return sums;
}

// [Σa, Σb, Σc, Σd].
HWY_INLINE Four sums_of(Four a, Four b, Four c, Four d) {
  const Quad q;
  const hn::Repartition<uint64_t, Quad> u;
  const Four ab = hn::Add(hn::InterleaveLower(q, a, b), hn::InterleaveUpper(q, a, b));
  const Four cd = hn::Add(hn::InterleaveLower(q, c, d), hn::InterleaveUpper(q, c, d));
  const auto ab2 = hn::BitCast(u, ab), cd2 = hn::BitCast(u, cd);
  return hn::Add(hn::BitCast(q, hn::InterleaveLower(u, ab2, cd2)),
                 hn::BitCast(q, hn::InterleaveUpper(u, ab2, cd2)));
}

// One group of rows and the tile's inputs.
struct Rows {
  const uint32_t* numbers = nullptr;
  const uint16_t* offsets = nullptr;
  int64_t first_value = 0, count = 0, length = 0;
  int64_t first_column = 0;
};

// Calls `body(Rows, Rest<length % 4>)` for each group of a block.
template <int n>
struct Rest {};
template <class Body>
HWY_INLINE void for_each_group(const CsrStream& s, const CsrBlock& block, const Body& body) {
  for (int64_t t = block.first_tile; t < block.end_tile; ++t) {
    const CsrTile& tile = s.tiles[static_cast<size_t>(t)];
    for (int64_t g = tile.first_group; g < tile.end_group; ++g) {
      const CsrGroup& group = s.groups[static_cast<size_t>(g)];
      const Rows rows{.numbers = s.rows_in_order.data() + group.first_row,
                      .offsets = s.offsets.data() + group.first_value,
                      .first_value = group.first_value,
                      .count = group.rows,
                      .length = group.length,
                      .first_column = tile.first_column};
      switch (group.length % 4) {
        case 0:
          body(rows, Rest<0>());
          break;
        case 1:
          body(rows, Rest<1>());
          break;
        case 2:
          body(rows, Rest<2>());
          break;
        default:
          body(rows, Rest<3>());
      }
    }
  }
}

template <int kRest>
HWY_INLINE void product_of_rows(const Rows& rows, const float* values, const float* x,
                                const float* bias, float* y) {
  const Quad q;
  const auto sums = [&](int64_t i) HWY_ATTR {
    return row_sums<kRest>(values + rows.first_value + i * rows.length,
                           rows.offsets + i * rows.length, rows.length, x + rows.first_column);
  };
  const auto add = [&](int64_t i, float sum) HWY_ATTR {
    const uint32_t row = rows.numbers[i];
    const float start = rows.first_column > 0 ? y[row] : bias == nullptr ? 0.0f : bias[row];
    y[row] = start + sum;
  };
  int64_t i = 0;
  for (; i + 4 <= rows.count; i += 4) {
    HWY_ALIGN float four[4];
    hn::Store(sums_of(sums(i), sums(i + 1), sums(i + 2), sums(i + 3)), q, four);
    for (int r = 0; r < 4; ++r) add(i + r, four[r]);
  }
  const Four zero = hn::Zero(q);
  for (; i < rows.count; ++i) add(i, hn::GetLane(sums_of(sums(i), zero, zero, zero)));
}

void product_block_rows(const CsrStream& s, const CsrBlock& block, const float* values,
                        const float* x, int64_t batch, const float* bias, float* y) {
  for (int64_t example = 0; example < batch; ++example) {
    for_each_group(s, block, [&]<int kRest>(const Rows& rows, Rest<kRest>) HWY_ATTR {
      product_of_rows<kRest>(rows, values, x + example * s.columns, bias, y + example * s.rows);
    });
  }
}

// gradient (+)= factor · inputs, for each row of a group.
template <int kRest, bool kAdd>
HWY_INLINE void gradient_of_rows(const Rows& rows, const float* dy, const float* x,
                                 float* gradient) {
  const Quad q;
  const int64_t whole = rows.length - kRest;
  for (int64_t i = 0; i < rows.count; ++i) {
    const Four factor = hn::Set(q, dy[rows.numbers[i]]);
    const uint16_t* offsets = rows.offsets + i * rows.length;
    float* into = gradient + rows.first_value + i * rows.length;
    for (int64_t k = 0; k < whole; k += 4) {
      const Four in = inputs(x + rows.first_column, offsets + k);
      const Four old = kAdd ? hn::LoadU(q, into + k) : hn::Zero(q);
      hn::StoreU(kAdd ? hn::MulAdd(factor, in, old) : hn::Mul(factor, in), q, into + k);
    }
    for (int64_t k = whole; k < rows.length; ++k) {
      const float product = dy[rows.numbers[i]] * x[rows.first_column + offsets[k]];
      into[k] = kAdd ? into[k] + product : product;
    }
  }
}

void gradient_block_rows(const CsrStream& s, const CsrBlock& block, const float* dy, const float* x,
                         int64_t batch, bool accumulate, float* gradient) {
  for (int64_t example = 0; example < batch; ++example) {
    const float* dy_row = dy + example * s.rows;
    const float* x_row = x + example * s.columns;
    const bool add = accumulate || example > 0;
    for_each_group(s, block, [&]<int kRest>(const Rows& rows, Rest<kRest>) HWY_ATTR {
      (add ? gradient_of_rows<kRest, true> : gradient_of_rows<kRest, false>)(rows, dy_row, x_row,
                                                                             gradient);
    });
  }
}

void scatter_block_row(const CsrStream& s, const CsrBlock& block, const float* values,
                       const float* dy, float* dx) {
  for_each_group(s, block, [&](const Rows& rows, auto) HWY_ATTR {
    float* into = dx + rows.first_column;
    for (int64_t i = 0; i < rows.count; ++i) {
      const float factor = dy[rows.numbers[i]];
      const float* row = values + rows.first_value + i * rows.length;
      const uint16_t* offsets = rows.offsets + i * rows.length;
      for (int64_t k = 0; k < rows.length; ++k) into[offsets[k]] += factor * row[k];
    }
  });
}

#endif  // HWY_TARGET == HWY_SCALAR

}  // namespace
}  // namespace lacuna::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace lacuna {
namespace {

HWY_EXPORT(product_block_rows);
HWY_EXPORT(gradient_block_rows);
HWY_EXPORT(scatter_block_row);

constexpr int64_t kColumnsPerTask = 1 << 12;

}  // namespace

void csr_product_row_major(const CsrStream& s, const float* values, const float* x, int64_t batch,
                           const float* bias, float* y) {
  const auto run = use_reference_kernels() ? reference::csr_product_block_rows
                                           : HWY_DYNAMIC_DISPATCH(product_block_rows);
  parallel_blocks(static_cast<int64_t>(s.blocks.size()), [&](int64_t block) {
    run(s, s.blocks[static_cast<size_t>(block)], values, x, batch, bias, y);
  });
}

void csr_gradient_row_major(const CsrStream& s, const float* dy, const float* x, int64_t batch,
                            Accumulate accumulate, float* gradient) {
  const bool adds = accumulate == Accumulate::Yes;
  const auto run = use_reference_kernels() ? reference::csr_gradient_block_rows
                                           : HWY_DYNAMIC_DISPATCH(gradient_block_rows);
  parallel_blocks(static_cast<int64_t>(s.blocks.size()), [&](int64_t block) {
    run(s, s.blocks[static_cast<size_t>(block)], dy, x, batch, adds, gradient);
  });
}

bool csr_scatters_row(const CsrStream& s) {
  return static_cast<int64_t>(s.blocks.size()) * s.columns <= s.nnz;
}

void csr_scatter_row(const CsrStream& s, const float* values, const float* dy, float* dx) {
  const auto run = use_reference_kernels() ? reference::csr_scatter_block_row
                                           : HWY_DYNAMIC_DISPATCH(scatter_block_row);
  const auto blocks = static_cast<int64_t>(s.blocks.size());
  std::fill_n(dx, s.columns, 0.0f);
  if (blocks == 1) return run(s, s.blocks[0], values, dy, dx);
  // Blocks share columns, so each has its own sums, which are then added in order.
  std::vector<float> sums(static_cast<size_t>(blocks * s.columns));
  parallel_blocks(blocks, [&](int64_t block) {
    run(s, s.blocks[static_cast<size_t>(block)], values, dy, sums.data() + block * s.columns);
  });
  parallel_for(s.columns, kColumnsPerTask, [&](int64_t begin, int64_t end) {
    for (int64_t block = 0; block < blocks; ++block) {
      const float* part = sums.data() + block * s.columns;
      for (int64_t column = begin; column < end; ++column) dx[column] += part[column];
    }
  });
}

}  // namespace lacuna
#endif  // HWY_ONCE
