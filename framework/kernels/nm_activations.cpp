// Each slab of outputs is a product of its own, made in memory that stays in a second-level cache
// and then brought to row-major order: rows are copied, a weight's gradient is transposed.
#include "lacuna/framework/kernels/nm_activations.h"

#include <algorithm>

#include "lacuna/framework/core/parallel.h"
#include "lacuna/framework/core/tensor.h"
#include "lacuna/framework/kernels/reorder.h"
#include "lacuna/framework/kernels/slab.h"

namespace lacuna {
namespace {

using Floats = Array<float>;

Floats floats(int64_t count) { return Floats(static_cast<size_t>(count)); }

int64_t outputs_of(int64_t slab, int64_t out) {
  return std::min(kSlabWidth, out - slab * kSlabWidth);
}

// Examples whose outputs are copied by one thread at a time.
constexpr int64_t kExamples = 32;

void copy_outputs(const float* slab, int64_t batch, int64_t count, const float* bias, float* y,
                  int64_t stride) {
  for (int64_t i = 0; i < batch; ++i, slab += kSlabWidth, y += stride) {
    if (bias == nullptr) {
      std::copy_n(slab, count, y);
      continue;
    }
    for (int64_t o = 0; o < count; ++o) y[o] = slab[o] + bias[o];
  }
}

}  // namespace

int64_t output_slabs_size(int64_t out, int64_t in) { return slab_count(out) * in * kSlabWidth; }

void weight_to_output_slabs(const float* weight, int64_t out, int64_t in, float* slabs) {
  parallel_blocks(slab_count(out), [&](int64_t slab) {
    const int64_t first = slab * kSlabWidth * in;
    slab_of_rows(weight + first, outputs_of(slab, out), in, slabs + first);
  });
}

void rows_to_output_slabs(const float* rows, int64_t batch, int64_t out, float* slabs) {
  const int64_t count = slab_count(out);
  parallel_for(batch, kExamples, [&](int64_t begin, int64_t end) {
    for (int64_t slab = 0; slab < count; ++slab) {
      const int64_t some = outputs_of(slab, out);
      for (int64_t i = begin; i < end; ++i) {
        float* to = slabs + (slab * batch + i) * kSlabWidth;
        std::copy_n(rows + i * out + slab * kSlabWidth, some, to);
        std::fill(to + some, to + kSlabWidth, 0.0f);
      }
    }
  });
}

void nm_activation_product(const NmMatrix& x, const float* values, const float* weight, int64_t out,
                           const float* bias, float* y) {
  const int64_t batch = x.form.rows, in = x.form.columns;
  parallel_blocks(slab_count(out), [&](int64_t slab) {
    const int64_t first = slab * kSlabWidth, count = outputs_of(slab, out);
    Floats outputs = floats(batch * kSlabWidth);
    nm_product(x, values, weight + first * in, count, nullptr, outputs.data());
    copy_outputs(outputs.data(), batch, count, bias == nullptr ? nullptr : bias + first, y + first,
                 out);
  });
}

void nm_activation_input_gradient(const NmMatrix& x, const float* dy, const float* weight,
                                  int64_t out, float* gradient) {
  nm_gradient(x, dy, weight, out, false, gradient);
}

void nm_activation_weight_gradient(const FeatureStream& x, const float* dy, int64_t out,
                                   bool accumulate, float* gradient) {
  const int64_t batch = x.stream.columns, in = x.stream.rows;
  parallel_blocks(slab_count(out), [&](int64_t slab) {
    const int64_t first = slab * kSlabWidth, count = outputs_of(slab, out);
    float* into = gradient + first * in;
    Floats sums = floats(in * kSlabWidth);
    csr_product(x.stream, x.values.data(), dy + first * batch, count, nullptr, sums.data());
    if (!accumulate) return rows_of_slab(sums.data(), count, in, into);
    Floats rows = floats(in * count);
    rows_of_slab(sums.data(), count, in, rows.data());
    for (int64_t i = 0; i < in * count; ++i) into[i] += rows[static_cast<size_t>(i)];
  });
}

}  // namespace lacuna
