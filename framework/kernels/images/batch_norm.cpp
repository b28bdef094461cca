// The map by channel: a normalization together with the operations after it.
#include "lacuna/framework/kernels/images/batch_norm.hpp"

#include <hwy/cache_control.h>

#include "lacuna/framework/kernels/images/channel_passes.hpp"
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
void affine_run(const NormRun& run, const Lanes& scale, const Lanes& shift, bool rectify) {
  const Vector zero = hn::Zero(Floats());
  Vector a[kRunVectors], b[kRunVectors];
  for (int v = 0; v < kRunVectors; ++v) a[v] = lanes_at(scale, v), b[v] = lanes_at(shift, v);
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

}  // namespace
}  // namespace lacuna::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace lacuna {
namespace {

HWY_EXPORT(affine_run);

// Scalar form, to check the vectorized one.
void affine_plainly(const NormRun& run, const Lanes& scale, const Lanes& shift, bool rectify) {
  for (int64_t i = 0; i < run.count; ++i) {
    const auto lane = static_cast<size_t>(i % kRunLanes);
    const float y =
        scale[lane] * run.x[i] + shift[lane] + (run.added == nullptr ? 0.0f : run.added[i]);
    run.into[i] = rectify && y < 0.0f ? 0.0f : y;
    if (run.pass != nullptr) set_bit(run.pass, i, !(y <= 0.0f));
  }
  clear_line_behind_plainly(run);
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
  const ChannelTasks tasks(runs);
  tasks.for_each([&](int64_t group, int64_t task) {
    const Lanes a = lanes_of(runs, scale, group), b = lanes_of(runs, shift, group);
    for (int64_t part = tasks.first(task); part < tasks.first(task + 1); ++part) {
      runs.for_each(group, part, [&](const ImageRuns::Run& run) {
        run_affine({.x = data + run.begin,
                    .added = added_data == nullptr ? nullptr : added_data + run.begin,
                    .into = into + run.begin,
                    .pass = pass == nullptr ? nullptr : pass + run.bits,
                    .count = run.count,
                    .has_line_behind = run.has_line_behind,
                    .around_caches = around_caches},
                   a, b, rectify == Rectify::Yes);
      });
    }
    if (around_caches) hwy::FlushStream();
  });
  return y;
}

}  // namespace lacuna
#endif  // HWY_ONCE
