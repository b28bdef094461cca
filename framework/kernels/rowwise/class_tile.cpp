// Vectors along the 64 examples of a slab, loops over the classes. Tasks are a slab and 1024
// classes, 256 KiB, which the second pass finds in the second-level cache.
#include "lacuna/framework/kernels/rowwise/class_tile.hpp"

#include <algorithm>
#include <cmath>

#include "lacuna/framework/core/parallel.h"
#include "lacuna/framework/core/tensor.h"
#include "lacuna/framework/kernels/instruction_set.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "lacuna/framework/kernels/rowwise/class_tile.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "lacuna/framework/kernels/simd/exponential.inc"

HWY_BEFORE_NAMESPACE();
namespace lacuna::HWY_NAMESPACE {
namespace {

// Small terms next to a large one lose less in short sums.
constexpr int64_t kSummed = 64;

// The largest logit and the sum of exponentials of each of the first `examples` of a slab.
void exponentials_of_slab(const float* x, int64_t classes, int64_t examples, float* largest,
                          float* sum) {
  const Floats d;
  for (int64_t lane = 0; lane < examples; lane += lane_count()) {
    Vector most = hn::Set(d, -std::numeric_limits<float>::infinity());
    for (int64_t c = 0; c < classes; ++c)
      most = hn::Max(most, hn::LoadU(d, x + c * kSlabWidth + lane));
    Vector total = hn::Zero(d);
    for (int64_t begin = 0; begin < classes; begin += kSummed) {
      Vector part = hn::Zero(d);
      for (int64_t c = begin; c < std::min(begin + kSummed, classes); ++c) {
        const Vector logit = hn::LoadU(d, x + c * kSlabWidth + lane);
        part = hn::Add(part, quick_exp_or_zero(hn::Sub(logit, most)));
      }
      total = hn::Add(total, part);
    }
    hn::StoreU(most, d, largest + lane);
    hn::StoreU(total, d, sum + lane);
  }
}

void scale_slab(float* x, int64_t classes, int64_t examples, const float* largest,
                const float* factor) {
  const Floats d;
  for (int64_t c = 0; c < classes; ++c, x += kSlabWidth) {
    for (int64_t lane = 0; lane < examples; lane += lane_count()) {
      const Vector power =
          quick_exp_or_zero(hn::Sub(hn::LoadU(d, x + lane), hn::LoadU(d, largest + lane)));
      hn::StoreU(hn::Mul(power, hn::LoadU(d, factor + lane)), d, x + lane);
    }
    std::fill(x + examples, x + kSlabWidth, 0.0f);
  }
}

// The first class from `from` on in which an example has a logit above its threshold; `classes` if
// there is none.
int64_t find_above(const float* x, int64_t from, int64_t classes, const float* threshold) {
  const Floats d;
  for (int64_t c = from; c < classes; ++c) {
    for (int64_t lane = 0; lane < kSlabWidth; lane += lane_count()) {
      const auto is_above =
          hn::Gt(hn::LoadU(d, x + c * kSlabWidth + lane), hn::LoadU(d, threshold + lane));
      if (!hn::AllFalse(d, is_above)) return c;
    }
  }
  return classes;
}

}  // namespace
}  // namespace lacuna::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace lacuna {
namespace {

HWY_EXPORT(exponentials_of_slab);
HWY_EXPORT(scale_slab);
HWY_EXPORT(find_above);

void exponentials_of_slab_reference(const float* x, int64_t classes, int64_t examples,
                                    float* largest, float* sum) {
  for (int64_t i = 0; i < examples; ++i) {
    largest[i] = -std::numeric_limits<float>::infinity();
    for (int64_t c = 0; c < classes; ++c) largest[i] = std::max(largest[i], x[c * kSlabWidth + i]);
    double total = 0.0;
    for (int64_t c = 0; c < classes; ++c) total += std::exp(x[c * kSlabWidth + i] - largest[i]);
    sum[i] = static_cast<float>(total);
  }
}

void scale_slab_reference(float* x, int64_t classes, int64_t examples, const float* largest,
                          const float* factor) {
  for (int64_t c = 0; c < classes; ++c, x += kSlabWidth) {
    for (int64_t i = 0; i < examples; ++i) x[i] = factor[i] * std::exp(x[i] - largest[i]);
    std::fill(x + examples, x + kSlabWidth, 0.0f);
  }
}

int64_t find_above_reference(const float* x, int64_t from, int64_t classes,
                             const float* threshold) {
  for (int64_t c = from; c < classes; ++c) {
    for (int64_t i = 0; i < kSlabWidth; ++i) {
      if (x[c * kSlabWidth + i] > threshold[i]) return c;
    }
  }
  return classes;
}

constexpr int64_t kClassesPerTask = 1024;

int64_t slabs_of(const ClassTileShape& shape) {
  return (shape.examples + kSlabWidth - 1) / kSlabWidth;
}
int64_t examples_in(const ClassTileShape& shape, int64_t slab) {
  return std::min(kSlabWidth, shape.examples - slab * kSlabWidth);
}

// Calls `work(slab, first class, classes, task)` for the parts of a tile.
template <class Work>
void for_each_part(const ClassTileShape& shape, const Work& work) {
  const int64_t parts = (shape.classes + kClassesPerTask - 1) / kClassesPerTask;
  parallel_for(slabs_of(shape) * parts, 1, [&](int64_t begin, int64_t end) {
    for (int64_t task = begin; task < end; ++task) {
      const int64_t first = task % parts * kClassesPerTask;
      work(task / parts, first, std::min(kClassesPerTask, shape.classes - first), task);
    }
  });
}

void join(ExponentialSum& sum, float largest, double part) {
  if (largest > sum.largest) {
    sum.sum *= std::exp(static_cast<double>(sum.largest) - static_cast<double>(largest));
    sum.largest = largest;
    sum.sum += part;
    return;
  }
  sum.sum += part * std::exp(static_cast<double>(largest) - static_cast<double>(sum.largest));
}

}  // namespace

void add_exponentials(const ClassTileShape& shape, const float* logits,
                      std::span<ExponentialSum> sums) {
  const int64_t parts = (shape.classes + kClassesPerTask - 1) / kClassesPerTask;
  const auto size = static_cast<size_t>(slabs_of(shape) * parts * kSlabWidth);
  std::vector<float> largest(size), partial(size);
  const auto kernel = use_reference_kernels() ? exponentials_of_slab_reference
                                              : HWY_DYNAMIC_DISPATCH(exponentials_of_slab);
  for_each_part(shape, [&](int64_t slab, int64_t first, int64_t classes, int64_t task) {
    kernel(logits + (slab * shape.classes + first) * kSlabWidth, classes, examples_in(shape, slab),
           largest.data() + task * kSlabWidth, partial.data() + task * kSlabWidth);
  });
  for (int64_t i = 0; i < shape.examples; ++i) {
    for (int64_t part = 0; part < parts; ++part) {
      const auto at =
          static_cast<size_t>((i / kSlabWidth * parts + part) * kSlabWidth + i % kSlabWidth);
      join(sums[static_cast<size_t>(i)], largest[at], partial[at]);
    }
  }
}

void scaled_exponentials(const ClassTileShape& shape, std::span<const float> largest,
                         std::span<const float> factor, float* logits) {
  const auto padded = static_cast<size_t>(slabs_of(shape) * kSlabWidth);
  std::vector<float> most(padded), factors(padded);
  std::ranges::copy(largest, most.begin());
  std::ranges::copy(factor, factors.begin());
  const auto kernel =
      use_reference_kernels() ? scale_slab_reference : HWY_DYNAMIC_DISPATCH(scale_slab);
  for_each_part(shape, [&](int64_t slab, int64_t first, int64_t classes, int64_t) {
    kernel(logits + (slab * shape.classes + first) * kSlabWidth, classes, examples_in(shape, slab),
           most.data() + slab * kSlabWidth, factors.data() + slab * kSlabWidth);
  });
}

LargestLogits::LargestLogits(int64_t examples, int64_t count_)
    : count(count_),
      logits(static_cast<size_t>(examples * count_), -std::numeric_limits<float>::infinity()),
      classes(static_cast<size_t>(examples * count_), -1) {}

namespace {

// Puts a logit that is above the last one in its place, behind its equals.
void insert_logit(float logit, int64_t of_class, int64_t count, float* logits, int64_t* classes) {
  int64_t at = count - 1;
  for (; at > 0 && logit > logits[at - 1]; --at) {
    logits[at] = logits[at - 1];
    classes[at] = classes[at - 1];
  }
  logits[at] = logit;
  classes[at] = of_class;
}

}  // namespace

void take_largest(const ClassTileShape& shape, const float* logits, int64_t first_class,
                  LargestLogits& largest) {
  const int64_t count = largest.count;
  const auto find =
      use_reference_kernels() ? find_above_reference : HWY_DYNAMIC_DISPATCH(find_above);
  parallel_for(slabs_of(shape), 1, [&](int64_t begin, int64_t end) {
    for (int64_t slab = begin; slab < end; ++slab) {
      const float* x = logits + slab * shape.classes * kSlabWidth;
      // Padding never passes an infinite threshold.
      std::vector<float> threshold(kSlabWidth, std::numeric_limits<float>::infinity());
      const int64_t first = slab * kSlabWidth, examples = examples_in(shape, slab);
      for (int64_t i = 0; i < examples; ++i) {
        threshold[static_cast<size_t>(i)] =
            largest.logits[static_cast<size_t>((first + i + 1) * count - 1)];
      }
      for (int64_t c = find(x, 0, shape.classes, threshold.data()); c < shape.classes;
           c = find(x, c + 1, shape.classes, threshold.data())) {
        for (int64_t i = 0; i < examples; ++i) {
          const float logit = x[c * kSlabWidth + i];
          if (!(logit > threshold[static_cast<size_t>(i)])) continue;
          float* own = largest.logits.data() + (first + i) * count;
          insert_logit(logit, first_class + c, count, own,
                       largest.classes.data() + (first + i) * count);
          threshold[static_cast<size_t>(i)] = own[count - 1];
        }
      }
    }
  });
}

}  // namespace lacuna
#endif  // HWY_ONCE
