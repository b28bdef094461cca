// Each slab of outputs is a separate product. It is computed in memory that stays in a second-level
// cache, and then converted to row-major order: rows are copied, a weight's gradient is transposed.
#include "lacuna/framework/kernels/nm/nm_activations.hpp"

#include <algorithm>

#include "lacuna/framework/core/parallel.h"
#include "lacuna/framework/core/tensor.h"
#include "lacuna/framework/kernels/csr/feature_stream.hpp"
#include "lacuna/framework/kernels/pointwise/reorder.hpp"
#include "lacuna/framework/kernels/simd/slab.hpp"

namespace lacuna {
namespace {

using Floats = Array<float>;

Floats floats(int64_t count) { return Floats(static_cast<size_t>(count)); }

int64_t outputs_of(int64_t slab, int64_t out) {
  return std::min(kSlabWidth, out - slab * kSlabWidth);
}

// Floats moved, or multiply-adds, that make a task worth a thread.
constexpr int64_t kMoved = 1 << 15, kMultiplied = 1 << 18;
// Slots of the examples that are processed together, and the smallest number of these examples.
constexpr int64_t kSlotsInCache = 1 << 17, kLeastRows = 128;
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

// A unit of work has so few examples that their slots stay in a second-level cache for all slabs of
// outputs.
void nm_activation_product(const NmMatrix& x, const float* values, const OutputSlabs& weight,
                           int64_t out, const float* bias, float* y) {
  const int64_t batch = x.form.rows, in = x.form.columns, slabs = slab_count(out);
  const int64_t rows =
      std::max(kSlotsInCache / std::max<int64_t>(x.form.slots_of_row(), 1) / 4 * 4, kLeastRows);
  const int64_t blocks = (batch + rows - 1) / rows;
  if (weight.rows != nullptr && blocks > 1) {
    weight_to_output_slabs(weight.rows, out, in, weight.slabs);
  }
  const int64_t at_once =
      grain(kMultiplied, std::min(rows, batch) * x.form.slots_of_row() * kSlabWidth);
  parallel_for(blocks * slabs, at_once, [&](int64_t first_unit, int64_t end_unit) {
    Floats outputs = floats(std::min(rows, batch) * kSlabWidth);
    for (int64_t unit = first_unit; unit < end_unit; ++unit) {
      const int64_t first = unit % slabs * kSlabWidth, count = outputs_of(unit % slabs, out);
      const int64_t begin = unit / slabs * rows, end = std::min(begin + rows, batch);
      float* const slab = weight.slabs + first * in;
      if (weight.rows != nullptr && blocks == 1)
        slab_of_rows(weight.rows + first * in, count, in, slab);
      nm_product_part(x, values, begin, end, slab, count, outputs.data());
      copy_outputs(outputs.data(), end - begin, count, bias == nullptr ? nullptr : bias + first,
                   y + begin * out + first, out);
    }
  });
}

void nm_activation_input_gradient(const NmMatrix& x, const float* dy, const float* weight,
                                  int64_t out, float* gradient) {
  nm_gradient(x, dy, weight, out, Accumulate::No, gradient);
}

namespace {

// The stream of examples [0, batch) of x. Its slabs are made like those of a weight, with an
// example in place of an output.
FeatureStream stream_of(const float* x, int64_t batch, int64_t in) {
  Floats slabs = floats(output_slabs_size(batch, in));
  weight_to_output_slabs(x, batch, in, slabs.data());
  return feature_stream(slabs.data(), batch, in);
}

// dy: the first slab's rows of the stream's examples; the next slab is `next` floats further.
void add_weight_gradient(const FeatureStream& x, const float* dy, int64_t next, int64_t out,
                         bool accumulate, float* gradient) {
  const int64_t in = x.stream.rows;
  const int64_t at_once = grain(kMultiplied, x.stream.nnz * kSlabWidth);
  parallel_for(slab_count(out), at_once, [&](int64_t begin, int64_t end) {
    Floats sums = floats(in * kSlabWidth), rows = floats(accumulate ? in * kSlabWidth : 0);
    for (int64_t slab = begin; slab < end; ++slab) {
      const int64_t count = outputs_of(slab, out);
      float* into = gradient + slab * kSlabWidth * in;
      csr_product(x.stream, x.values.data(), dy + slab * next, count, nullptr, sums.data());
      rows_of_slab(sums.data(), count, in, accumulate ? rows.data() : into);
      if (!accumulate) continue;
      for (int64_t i = 0; i < in * count; ++i) into[i] += rows[static_cast<size_t>(i)];
    }
  });
}

}  // namespace

// The stream is read once per slab of outputs; one of many examples would leave the cache.
void nm_activation_weight_gradient(const float* x, int64_t batch, int64_t in, const float* dy,
                                   int64_t out, Accumulate accumulate, float* gradient) {
  const bool adds = accumulate == Accumulate::Yes;
  constexpr int64_t kActivations = 1 << 21, kLeastExamples = 1024;
  const int64_t most =
      std::max(kActivations / std::max<int64_t>(in, 1) / 128 * 128, kLeastExamples);
  int64_t first = 0;
  do {
    const int64_t examples = std::min(most, batch - first);
    add_weight_gradient(stream_of(x + first * in, examples, in), dy + first * kSlabWidth,
                        batch * kSlabWidth, out, adds || first > 0, gradient);
    first += examples;
  } while (first < batch);
}

}  // namespace lacuna
