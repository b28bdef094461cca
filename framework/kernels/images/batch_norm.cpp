// The maps by channel: a normalization with what follows it, and its gradient.
#include "lacuna/framework/kernels/images/batch_norm.h"

#include "lacuna/framework/core/parallel.h"
#include "lacuna/framework/kernels/instruction_set.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "lacuna/framework/kernels/images/batch_norm.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "lacuna/framework/kernels/images/norm_run.inc"

HWY_BEFORE_NAMESPACE();
namespace lacuna::HWY_NAMESPACE {
namespace {

// into = scale x + shift (+ added), rectified or not.
void affine_run(const NormRun& run, const Lanes& scale, const Lanes& shift, bool rectify) {
  const Vector zero = hn::Zero(Floats());
  Vector a[kRunVectors], b[kRunVectors];
  for (int v = 0; v < kRunVectors; ++v) a[v] = lanes_at(scale, v), b[v] = lanes_at(shift, v);
  for_each_vector(run.count, [&](int v, int64_t i, int64_t n) HWY_ATTR {
    Vector y = hn::MulAdd(a[v], load_some(run.x + i, n), b[v]);
    if (run.added != nullptr) y = hn::Add(y, load_some(run.added + i, n));
    // Not Max, which may take a NaN for zero.
    if (rectify) y = hn::IfThenZeroElse(hn::Lt(y, zero), y);
    store_some(y, run.into + i, n);
  });
}

// into = a g + b x + c, dg = g.
void affine_gradient_run(const NormRun& run, const Lanes& a, const Lanes& b, const Lanes& c) {
  for_each_vector(run.count, [&](int v, int64_t i, int64_t n) HWY_ATTR {
    const Vector g = gradient_at(run, i, n);
    const Vector rest = hn::MulAdd(lanes_at(b, v), load_some(run.x + i, n), lanes_at(c, v));
    store_some(hn::MulAdd(lanes_at(a, v), g, rest), run.into + i, n);
    if (run.dg != nullptr) store_some(g, run.dg + i, n);
  });
}

}  // namespace
}  // namespace lacuna::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace lacuna {
namespace {

HWY_EXPORT(affine_run);
HWY_EXPORT(affine_gradient_run);

// Scalar forms, for checking the rest.
void affine_plainly(const NormRun& run, const Lanes& scale, const Lanes& shift, bool rectify) {
  for (int64_t i = 0; i < run.count; ++i) {
    const auto lane = static_cast<size_t>(i % kRunLanes);
    const float y =
        scale[lane] * run.x[i] + shift[lane] + (run.added == nullptr ? 0.0f : run.added[i]);
    run.into[i] = rectify && y < 0.0f ? 0.0f : y;
  }
}
void affine_gradient_plainly(const NormRun& run, const Lanes& a, const Lanes& b, const Lanes& c) {
  for (int64_t i = 0; i < run.count; ++i) {
    const auto lane = static_cast<size_t>(i % kRunLanes);
    const float g = gradient_at(run, i);
    run.into[i] = a[lane] * g + b[lane] * run.x[i] + c[lane];
    if (run.dg != nullptr) run.dg[i] = g;
  }
}

// `body(group, first part, end part)` for tasks that cover all.
template <class Body>
void for_each_task(const ImageRuns& runs, const Body& body) {
  const int64_t tasks = task_parts(runs), parts = runs.parts();
  parallel_blocks(runs.groups() * tasks, [&](int64_t index) {
    const int64_t task = index % tasks;
    body(index / tasks, parts * task / tasks, parts * (task + 1) / tasks);
  });
}

}  // namespace

Tensor channel_affine(const Tensor& x, const std::vector<float>& scale,
                      const std::vector<float>& shift, const Tensor& added, Rectify rectify) {
  const ImageRuns runs(x.shape(), x.order());
  Tensor y = Tensor::empty(x.shape(), x.order());
  const auto run_affine =
      use_reference_kernels() ? affine_plainly : HWY_DYNAMIC_DISPATCH(affine_run);
  const float* data = x.data(x.order());
  const float* added_data = added.defined() ? added.data(x.order()) : nullptr;
  float* into = y.mutable_data(x.order());
  for_each_task(runs, [&](int64_t group, int64_t first, int64_t end) {
    const Lanes a = lanes_of(runs, scale, group), b = lanes_of(runs, shift, group);
    for (int64_t part = first; part < end; ++part) {
      runs.for_each(group, part, [&](int64_t begin, int64_t count) {
        run_affine({.x = data + begin,
                    .added = added_data == nullptr ? nullptr : added_data + begin,
                    .into = into + begin,
                    .count = count},
                   a, b, rectify == Rectify::Yes);
      });
    }
  });
  return y;
}

Tensor channel_affine_gradient(const Tensor& dy, const Tensor& y, const Tensor& x,
                               const std::vector<float>& a, const std::vector<float>& b,
                               const std::vector<float>& c, Tensor* dg) {
  const ImageRuns runs(x.shape(), x.order());
  Tensor dx = Tensor::empty(x.shape(), x.order());
  if (dg != nullptr) *dg = Tensor::empty(x.shape(), x.order());
  const auto run_gradient =
      use_reference_kernels() ? affine_gradient_plainly : HWY_DYNAMIC_DISPATCH(affine_gradient_run);
  const float* x_data = x.data(x.order());
  const float* dy_data = dy.data(x.order());
  const float* y_data = y.defined() ? y.data(x.order()) : nullptr;
  float* into = dx.mutable_data(x.order());
  float* g_data = dg == nullptr ? nullptr : dg->mutable_data(x.order());
  for_each_task(runs, [&](int64_t group, int64_t first, int64_t end) {
    const Lanes al = lanes_of(runs, a, group), bl = lanes_of(runs, b, group),
                cl = lanes_of(runs, c, group);
    for (int64_t part = first; part < end; ++part) {
      runs.for_each(group, part, [&](int64_t begin, int64_t count) {
        run_gradient({.x = x_data + begin,
                      .dy = dy_data + begin,
                      .y = y_data == nullptr ? nullptr : y_data + begin,
                      .into = into + begin,
                      .dg = g_data == nullptr ? nullptr : g_data + begin,
                      .count = count},
                     al, bl, cl);
      });
    }
  });
  return dx;
}

}  // namespace lacuna
#endif  // HWY_ONCE
