// The map by channel: a normalization together with the operations after it.
#include "lacuna/framework/kernels/images/batch_norm.hpp"

#include <hwy/cache_control.h>

#include "lacuna/framework/core/parallel.h"
#include "lacuna/framework/kernels/images/image_runs.hpp"
#include "lacuna/framework/kernels/instruction_set.hpp"
#include "lacuna/framework/kernels/simd/processor.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "lacuna/framework/kernels/images/batch_norm.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "lacuna/framework/kernels/images/norm_run.inc"

HWY_BEFORE_NAMESPACE();
namespace lacuna::HWY_NAMESPACE {
namespace {

// into = scale x + shift (+ added), with or without ReLU; pass: whether it is not ≤ 0.
void affine_run(const NormRun& all, const Lanes& scale, const Lanes& shift, bool rectify) {
  const Vector zero = hn::Zero(Floats());
  Vector a[kRunVectors], b[kRunVectors];
  for (int v = 0; v < kRunVectors; ++v) a[v] = lanes_at(scale, v), b[v] = lanes_at(shift, v);
  for (int64_t row = 0; row < all.rows; ++row) {
    const NormRun run = all.row(row);
    for_each_vector(run.count, [&](int v, int64_t i, int64_t n) HWY_ATTR {
      ask_ahead(run.x, v, i);
      Vector y = hn::MulAdd(a[v], load_some(run.x + i, n), b[v]);
      if (run.added != nullptr) {
        ask_ahead(run.added, v, i);
        y = hn::Add(y, load_some(run.added + i, n));
      }
      // Max is not used, because it may return zero for NaN.
      if (rectify) y = hn::IfThenZeroElse(hn::Lt(y, zero), y);
      store_around(run, y, run.into + i, n);
      if (run.pass != nullptr) store_bits(hn::Not(hn::Le(y, zero)), run.pass, i);
    });
    clear_line_behind(run);
  }
}

}  // namespace
}  // namespace lacuna::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace lacuna {
namespace {

HWY_EXPORT(affine_run);

// Scalar form, to check the vectorized one.
void affine_plainly(const NormRun& all, const Lanes& scale, const Lanes& shift, bool rectify) {
  for (int64_t row = 0; row < all.rows; ++row) {
    const NormRun run = all.row(row);
    for (int64_t i = 0; i < run.count; ++i) {
      const auto lane = static_cast<size_t>(i % kRunLanes);
      const float y =
          scale[lane] * run.x[i] + shift[lane] + (run.added == nullptr ? 0.0f : run.added[i]);
      run.into[i] = rectify && y < 0.0f ? 0.0f : y;
      if (run.pass != nullptr) set_bit(run.pass, i, !(y <= 0.0f));
    }
    clear_line_behind_plainly(run);
  }
}

}  // namespace

Tensor channel_affine(const Tensor& x, const std::vector<float>& scale,
                      const std::vector<float>& shift, const Tensor& added, Rectify rectify,
                      Tensor* passed) {
  const ImageRuns runs(x.shape(), x.order());
  Tensor y = Tensor::empty(x.shape(), x.order(), Tensor::Padding::ZeroButBetweenRows);
  uint8_t* pass = nullptr;
  if (passed != nullptr) {
    *passed = Tensor::empty(Shape{bit_floats(runs)});
    pass = reinterpret_cast<uint8_t*>(passed->mutable_data());
  }
  const auto run_affine =
      use_reference_kernels() ? affine_plainly : HWY_DYNAMIC_DISPATCH(affine_run);
  const float* data = x.data(x.order());
  const float* added_data = added.defined() ? added.data(x.order()) : nullptr;
  float* into = y.mutable_data(x.order());
  // In row-major order, rows of pixels are not aligned.
  const bool around_caches = x.order() != Order::RowMajor && writes_around_caches(y.bytes());
  const std::vector<Lanes> a = lanes_of_groups(runs, scale), b = lanes_of_groups(runs, shift);
  // In the order of memory: the groups of a part follow each other.
  constexpr int64_t kTasks = 64;
  const int64_t groups = runs.groups(), count = groups * runs.parts();
  parallel_for(count, count / kTasks + 1, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const auto group = static_cast<size_t>(i % groups);
      const ImageRuns::Run run = runs.run(i % groups, i / groups);
      run_affine({.x = data + run.begin,
                  .added = added_data == nullptr ? nullptr : added_data + run.begin,
                  .into = into + run.begin,
                  .pass = pass == nullptr ? nullptr : pass + run.bits,
                  .count = run.count,
                  .rows = run.rows,
                  .row_step = run.row_step,
                  .around_caches = around_caches},
                 a[group], b[group], rectify == Rectify::Yes);
    }
    if (around_caches) hwy::FlushStream();
  });
  return y;
}

}  // namespace lacuna
#endif  // HWY_ONCE
