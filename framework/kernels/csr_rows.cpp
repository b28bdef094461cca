// The products for batches of a few examples, row-major: see csr.h.
#include <algorithm>

#include "lacuna/framework/core/parallel.h"
#include "lacuna/framework/kernels/csr.h"
#include "lacuna/framework/kernels/csr_reference.h"

namespace lacuna {

void csr_product_rows(const CsrStream& s, const float* values, const float* x, int64_t batch,
                      const float* bias, float* y) {
  parallel_blocks(static_cast<int64_t>(s.blocks.size()), [&](int64_t b) {
    const CsrBlock& block = s.blocks[static_cast<size_t>(b)];
    for (int64_t example = 0; example < batch; ++example) {
      float* out = y + example * s.rows;
      const float* in = x + example * s.columns;
      for (int64_t row = block.first_row; row < block.end_row; ++row) {
        out[row] = bias == nullptr ? 0.0f : bias[row];
      }
      reference::csr_for_each_nonzero(s, block, [&](int64_t row, int64_t value, int64_t column) {
        out[row] += values[value] * in[column];
      });
    }
  });
}

void csr_gradient_rows(const CsrStream& s, const float* dy, const float* x, int64_t batch,
                       bool accumulate, float* gradient) {
  if (batch == 0 && !accumulate) std::fill_n(gradient, s.nnz, 0.0f);
  parallel_blocks(static_cast<int64_t>(s.blocks.size()), [&](int64_t b) {
    const CsrBlock& block = s.blocks[static_cast<size_t>(b)];
    for (int64_t example = 0; example < batch; ++example) {
      const float* out = dy + example * s.rows;
      const float* in = x + example * s.columns;
      const bool add = accumulate || example > 0;
      reference::csr_for_each_nonzero(s, block, [&](int64_t row, int64_t value, int64_t column) {
        gradient[value] = (add ? gradient[value] : 0.0f) + out[row] * in[column];
      });
    }
  });
}

}  // namespace lacuna
