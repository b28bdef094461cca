// The gradient of a normalization and what follows it: sums by channel, then a map.
#include "lacuna/framework/kernels/images/batch_norm.hpp"

#include "lacuna/framework/kernels/images/channel_passes.hpp"
#include "lacuna/framework/kernels/instruction_set.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "lacuna/framework/kernels/images/norm_gradient.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "lacuna/framework/kernels/images/norm_run.inc"

HWY_BEFORE_NAMESPACE();
namespace lacuna::HWY_NAMESPACE {
namespace {

// s += Σ g, q += Σ g (x − mean).
void gradient_sums_run(const NormRun& run, const Lanes& mean, LaneSums& s, LaneSums& q) {
  add_lane_sums(
      run.count, s, q,
      [&](int v, int64_t i, int64_t n) HWY_ATTR {
        ask_ahead(run.dy, v, i);
        ask_ahead(run.x, v, i);
        return gradient_at(run, i, n);
      },
      [&](int v, int64_t i, int64_t n, Vector g)
          HWY_ATTR { return hn::Mul(g, hn::Sub(load_some(run.x + i, n), lanes_at(mean, v))); });
}

// into = a g + b x + c, dg = g.
void affine_gradient_run(const NormRun& run, const Lanes& a, const Lanes& b, const Lanes& c) {
  for_each_vector(run.count, [&](int v, int64_t i, int64_t n) HWY_ATTR {
    const Vector g = gradient_at(run, i, n);
    const Vector rest = hn::MulAdd(lanes_at(b, v), load_some(run.x + i, n), lanes_at(c, v));
    store_some(hn::MulAdd(lanes_at(a, v), g, rest), run.into + i, n);
    if (run.dg != nullptr) store_some(g, run.dg + i, n);
  });
  clear_line_behind(run);
}

}  // namespace
}  // namespace lacuna::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace lacuna {
namespace {

HWY_EXPORT(gradient_sums_run);
HWY_EXPORT(affine_gradient_run);

// Scalar forms, to check the vectorized ones.
void gradient_sums_plainly(const NormRun& run, const Lanes& mean, LaneSums& s, LaneSums& q) {
  for (int64_t i = 0; i < run.count; ++i) {
    const auto lane = static_cast<size_t>(i % kRunLanes);
    const double g = gradient_at(run, i);
    s[lane] += g;
    q[lane] += g * (static_cast<double>(run.x[i]) - mean[lane]);
  }
}
void affine_gradient_plainly(const NormRun& run, const Lanes& a, const Lanes& b, const Lanes& c) {
  for (int64_t i = 0; i < run.count; ++i) {
    const auto lane = static_cast<size_t>(i % kRunLanes);
    const float g = gradient_at(run, i);
    run.into[i] = a[lane] * g + b[lane] * run.x[i] + c[lane];
    if (run.dg != nullptr) run.dg[i] = g;
  }
  clear_line_behind_plainly(run);
}

// The inputs of both passes, and the sums that the first pass computes.
class GradientPasses {
 public:
  GradientPasses(const Tensor& dy, const Tensor& passed, const Tensor& x)
      : runs_(x.shape(), x.order()),
        tasks_(runs_),
        sums_(runs_, tasks_),
        x_(x.data(x.order())),
        dy_(dy.data(x.order())),
        passed_(passed.defined() ? reinterpret_cast<const uint8_t*>(passed.data()) : nullptr) {}

  const ImageRuns& runs() const { return runs_; }
  const ChannelTasks& tasks() const { return tasks_; }
  ChannelSums::Pair sums_of(int64_t channel) const { return sums_.of(channel); }

  void sum(int64_t group, int64_t task, const std::vector<float>& mean) {
    const Lanes lanes = lanes_of(runs_, mean, group);
    sums_.sum(group, task, [&](int64_t part, LaneSums& s, LaneSums& q) {
      runs_.for_each(group, part,
                     [&](const ImageRuns::Run& run) { run_sums_(inputs(run), lanes, s, q); });
    });
  }

  void map(int64_t group, int64_t task, const std::vector<NormSlopes>& slopes, float* dx,
           float* dg) const {
    Lanes a{}, b{}, c{};
    for (int64_t i = 0; i < kRunLanes; ++i) {
      const auto lane = static_cast<size_t>(i);
      const auto channel = static_cast<size_t>(runs_.channel(group, i));
      if (channel < slopes.size()) {
        a[lane] = slopes[channel].a, b[lane] = slopes[channel].b, c[lane] = slopes[channel].c;
      }
    }
    for (int64_t part = tasks_.first(task); part < tasks_.first(task + 1); ++part) {
      runs_.for_each(group, part, [&](const ImageRuns::Run& run) {
        NormRun arrays = inputs(run);
        arrays.into = dx + run.begin;
        arrays.dg = dg == nullptr ? nullptr : dg + run.begin;
        run_map_(arrays, a, b, c);
      });
    }
  }

 private:
  NormRun inputs(const ImageRuns::Run& run) const {
    return {.x = x_ + run.begin,
            .dy = dy_ + run.begin,
            .passed = passed_ == nullptr ? nullptr : passed_ + run.bits,
            .count = run.count,
            .has_line_behind = run.has_line_behind};
  }

  ImageRuns runs_;
  ChannelTasks tasks_;
  ChannelSums sums_;
  const float* x_;
  const float* dy_;
  const uint8_t* passed_;
  decltype(&gradient_sums_plainly) run_sums_ =
      use_reference_kernels() ? gradient_sums_plainly : HWY_DYNAMIC_DISPATCH(gradient_sums_run);
  decltype(&affine_gradient_plainly) run_map_ =
      use_reference_kernels() ? affine_gradient_plainly : HWY_DYNAMIC_DISPATCH(affine_gradient_run);
};

// The arrays that a map fills: dx, and dg on request.
struct Gradients {
  Gradients(const Tensor& x, Tensor& dx_tensor, Tensor* dg_tensor) {
    constexpr auto kPadding = Tensor::Padding::ZeroButBetweenRows;
    dx_tensor = Tensor::empty(x.shape(), x.order(), kPadding);
    dx = dx_tensor.mutable_data(x.order());
    if (dg_tensor == nullptr) return;
    *dg_tensor = Tensor::empty(x.shape(), x.order(), kPadding);
    dg = dg_tensor->mutable_data(x.order());
  }
  float* dx;
  float* dg = nullptr;
};

}  // namespace

NormGradientSums norm_gradient_sums(const Tensor& dy, const Tensor& passed, const Tensor& x,
                                    const std::vector<float>& mean,
                                    const std::vector<float>& inverse_deviation) {
  GradientPasses passes(dy, passed, x);
  passes.tasks().for_each([&](int64_t group, int64_t task) { passes.sum(group, task, mean); });
  NormGradientSums result;
  for (size_t c = 0; c < mean.size(); ++c) {
    const auto [g, gx] = passes.sums_of(static_cast<int64_t>(c));
    result.g.push_back(g);
    result.gx.push_back(gx * static_cast<double>(inverse_deviation[c]));
  }
  return result;
}

Tensor channel_affine_gradient(const Tensor& dy, const Tensor& passed, const Tensor& x,
                               const std::vector<NormSlopes>& slopes, Tensor* dg) {
  const GradientPasses passes(dy, passed, x);
  Tensor dx;
  const Gradients into(x, dx, dg);
  passes.tasks().for_each(
      [&](int64_t group, int64_t task) { passes.map(group, task, slopes, into.dx, into.dg); });
  return dx;
}

NormGradientSums norm_gradient(const Tensor& dy, const Tensor& passed, const Tensor& x,
                               const std::vector<float>& mean,
                               const std::vector<float>& inverse_deviation,
                               const std::function<NormSlopes(size_t, double, double)>& slopes_of,
                               Tensor& dx, Tensor* dg) {
  GradientPasses passes(dy, passed, x);
  const Gradients into(x, dx, dg);
  NormGradientSums result{std::vector<double>(mean.size()), std::vector<double>(mean.size())};
  std::vector<NormSlopes> slopes(mean.size());
  const auto conclude = [&](int64_t group) {
    for (int64_t lane = 0; lane < (passes.runs().has_channel_lanes() ? kRunLanes : 1); ++lane) {
      const int64_t channel = passes.runs().channel(group, lane);
      if (channel >= passes.runs().channels()) break;
      const auto c = static_cast<size_t>(channel);
      const auto [g, gx] = passes.sums_of(channel);
      result.g[c] = g;
      result.gx[c] = gx * static_cast<double>(inverse_deviation[c]);
      slopes[c] = slopes_of(c, result.g[c], result.gx[c]);
    }
  };
  const auto map = [&](int64_t group, int64_t task) {
    passes.map(group, task, slopes, into.dx, into.dg);
  };
  const int64_t groups = passes.tasks().groups(), tasks = passes.tasks().count();
  if (tasks == 1) {
    parallel_blocks(groups, [&](int64_t group) {
      passes.sum(group, 0, mean);
      conclude(group);
      map(group, 0);
    });
    return result;
  }
  for (int64_t group = 0; group < groups; ++group) {
    parallel_blocks(tasks, [&](int64_t task) { passes.sum(group, task, mean); });
    conclude(group);
    parallel_blocks(tasks, [&](int64_t task) { map(group, task); });
  }
  return result;
}

}  // namespace lacuna
#endif  // HWY_ONCE
