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

// Slabs, or rows, that make a task worth a thread: of so many floats moved, or multiply-adds.
constexpr int64_t kMoved = 1 << 15, kMultiplied = 1 << 20;
int64_t grain(int64_t least, int64_t each) {
  return std::max<int64_t>(least / std::max<int64_t>(each, 1), 1);
}

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
  parallel_for(slab_count(out), grain(kMoved, in * kSlabWidth), [&](int64_t begin, int64_t end) {
    for (int64_t slab = begin; slab < end; ++slab) {
      const int64_t first = slab * kSlabWidth * in;
      slab_of_rows(weight + first, outputs_of(slab, out), in, slabs + first);
    }
  });
}

void rows_to_output_slabs(const float* rows, int64_t batch, int64_t out, float* slabs) {
  const int64_t count = slab_count(out);
  parallel_for(batch, grain(kMoved, out), [&](int64_t begin, int64_t end) {
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

void nm_activation_product(const NmMatrix& x, const float* values, const OutputSlabs& weight,
                           int64_t out, const float* bias, float* y) {
  const int64_t batch = x.form.rows, in = x.form.columns;
  const int64_t at_once = grain(kMultiplied, x.form.stored() * kSlabWidth);
  parallel_for(slab_count(out), at_once, [&](int64_t begin, int64_t end) {
    Floats outputs = floats(batch * kSlabWidth);
    for (int64_t slab = begin; slab < end; ++slab) {
      const int64_t first = slab * kSlabWidth, count = outputs_of(slab, out);
      float* const slab_weight = weight.slabs + first * in;
      if (weight.rows != nullptr) slab_of_rows(weight.rows + first * in, count, in, slab_weight);
      nm_product(x, values, slab_weight, count, nullptr, outputs.data());
      copy_outputs(outputs.data(), batch, count, bias == nullptr ? nullptr : bias + first,
                   y + first, out);
    }
  });
}

void nm_activation_input_gradient(const NmMatrix& x, const float* dy, const float* weight,
                                  int64_t out, float* gradient) {
  nm_gradient(x, dy, weight, out, false, gradient);
}

void nm_activation_weight_gradient(const FeatureStream& x, const float* dy, int64_t out,
                                   bool accumulate, float* gradient) {
  const int64_t batch = x.stream.columns, in = x.stream.rows;
  const int64_t at_once = grain(kMultiplied, x.stream.nnz * kSlabWidth);
  parallel_for(slab_count(out), at_once, [&](int64_t begin, int64_t end) {
    Floats sums = floats(in * kSlabWidth), rows = floats(accumulate ? in * kSlabWidth : 0);
    for (int64_t slab = begin; slab < end; ++slab) {
      const int64_t first = slab * kSlabWidth, count = outputs_of(slab, out);
      float* into = gradient + first * in;
      csr_product(x.stream, x.values.data(), dy + first * batch, count, nullptr, sums.data());
      rows_of_slab(sums.data(), count, in, accumulate ? rows.data() : into);
      if (!accumulate) continue;
      for (int64_t i = 0; i < in * count; ++i) into[i] += rows[static_cast<size_t>(i)];
    }
  });
}

}  // namespace lacuna
