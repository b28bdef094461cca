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

// The second-level cache has to keep what the second pass reads again, so less is asked for.
constexpr int64_t kAhead = 256;

// s += Σ g, q += Σ g (x − mean); dg = g, where it is there.
void gradient_sums_run(const NormRun& all, const Lanes& mean, LaneSums& s, LaneSums& q) {
  for (int64_t row = 0; row < all.rows; ++row) {
    const NormRun run = all.row(row);
    add_lane_sums(
        run.count, s, q,
        [&](int v, int64_t i, int64_t n) HWY_ATTR {
          ask_ahead<kAhead>(run.dy, v, i);
          if (run.more_dy != nullptr) ask_ahead<kAhead>(run.more_dy, v, i);
          ask_ahead<kAhead>(run.x, v, i);
          const Vector g = gradient_at(run, i, n);
          if (run.dg != nullptr) store_some(g, run.dg + i, n);
          return g;
        },
        [&](int v, int64_t i, int64_t n, Vector g)
            HWY_ATTR { return hn::Mul(g, hn::Sub(load_some(run.x + i, n), lanes_at(mean, v))); });
    clear_line_behind(run);
  }
}

// into = a g + b x + c (+ added), dg = g.
void affine_gradient_run(const NormRun& all, const Lanes& a, const Lanes& b, const Lanes& c) {
  for (int64_t row = 0; row < all.rows; ++row) {
    const NormRun run = all.row(row);
    for_each_vector(run.count, [&](int v, int64_t i, int64_t n) HWY_ATTR {
      const Vector g = gradient_at(run, i, n);
      const Vector rest = hn::MulAdd(lanes_at(b, v), load_some(run.x + i, n), lanes_at(c, v));
      Vector dx = hn::MulAdd(lanes_at(a, v), g, rest);
      if (run.added != nullptr) dx = hn::Add(load_some(run.added + i, n), dx);
      store_some(dx, run.into + i, n);
      if (run.dg != nullptr) store_some(g, run.dg + i, n);
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

HWY_EXPORT(gradient_sums_run);
HWY_EXPORT(affine_gradient_run);

// Scalar forms, to check the vectorized ones.
void gradient_sums_plainly(const NormRun& all, const Lanes& mean, LaneSums& s, LaneSums& q) {
  for (int64_t row = 0; row < all.rows; ++row) {
    const NormRun run = all.row(row);
    for (int64_t i = 0; i < run.count; ++i) {
      const auto lane = static_cast<size_t>(i % kRunLanes);
      const double g = gradient_at(run, i);
      s[lane] += g;
      q[lane] += g * (static_cast<double>(run.x[i]) - mean[lane]);
      if (run.dg != nullptr) run.dg[i] = static_cast<float>(g);
    }
    clear_line_behind_plainly(run);
  }
}
void affine_gradient_plainly(const NormRun& all, const Lanes& a, const Lanes& b, const Lanes& c) {
  for (int64_t row = 0; row < all.rows; ++row) {
    const NormRun run = all.row(row);
    for (int64_t i = 0; i < run.count; ++i) {
      const auto lane = static_cast<size_t>(i % kRunLanes);
      const float g = gradient_at(run, i);
      const float dx = a[lane] * g + b[lane] * run.x[i] + c[lane];
      run.into[i] = run.added == nullptr ? dx : run.added[i] + dx;
      if (run.dg != nullptr) run.dg[i] = g;
    }
    clear_line_behind_plainly(run);
  }
}

// Arrays that one of the passes reads, or null.
struct NormSources {
  const float* x;
  const float* dy;
  const float* more_dy;
  const uint8_t* passed;
  const float* added;
};
// Those that it writes, or null.
struct NormTargets {
  float* dx = nullptr;
  float* dg = nullptr;
};

// Both passes over some part of the channels, and the sums that the first one makes.
class GradientPasses {
 public:
  explicit GradientPasses(const Tensor& x)
      : runs_(x.shape(), x.order()), tasks_(runs_), sums_(runs_, tasks_) {}

  const ImageRuns& runs() const { return runs_; }
  const ChannelTasks& tasks() const { return tasks_; }
  ChannelSums::Pair sums_of(int64_t channel) const { return sums_.of(channel); }

  void sum(int64_t group, int64_t task, const std::vector<float>& mean, const NormSources& from,
           const NormTargets& into) {
    const Lanes lanes = lanes_of(runs_, mean, group);
    sums_.sum(group, task, [&](int64_t part, LaneSums& s, LaneSums& q) {
      run_sums_(arrays(runs_.run(group, part), from, into), lanes, s, q);
    });
  }

  void map(int64_t group, int64_t task, const std::vector<NormSlopes>& slopes,
           const NormSources& from, const NormTargets& into) const {
    Lanes a{}, b{}, c{};
    for (int64_t i = 0; i < kRunLanes; ++i) {
      const auto lane = static_cast<size_t>(i);
      const auto channel = static_cast<size_t>(runs_.channel(group, i));
      if (channel < slopes.size()) {
        a[lane] = slopes[channel].a, b[lane] = slopes[channel].b, c[lane] = slopes[channel].c;
      }
    }
    for (int64_t part = tasks_.first(task); part < tasks_.first(task + 1); ++part) {
      run_map_(arrays(runs_.run(group, part), from, into), a, b, c);
    }
  }

 private:
  static NormRun arrays(const ImageRuns::Run& run, const NormSources& from,
                        const NormTargets& into) {
    const auto at = [&](auto* array) { return array == nullptr ? nullptr : array + run.begin; };
    return {.x = at(from.x),
            .dy = at(from.dy),
            .more_dy = at(from.more_dy),
            .added = at(from.added),
            .passed = from.passed == nullptr ? nullptr : from.passed + run.bits,
            .into = at(into.dx),
            .dg = at(into.dg),
            .count = run.count,
            .rows = run.rows,
            .row_step = run.row_step};
  }

  ImageRuns runs_;
  ChannelTasks tasks_;
  ChannelSums sums_;
  decltype(&gradient_sums_plainly) run_sums_ =
      use_reference_kernels() ? gradient_sums_plainly : HWY_DYNAMIC_DISPATCH(gradient_sums_run);
  decltype(&affine_gradient_plainly) run_map_ =
      use_reference_kernels() ? affine_gradient_plainly : HWY_DYNAMIC_DISPATCH(affine_gradient_run);
};

const float* data_of(const Tensor& tensor, Order order) {
  return tensor.defined() ? tensor.data(order) : nullptr;
}
const uint8_t* bits_of(const Tensor& passed) {
  return passed.defined() ? reinterpret_cast<const uint8_t*>(passed.data()) : nullptr;
}

Tensor empty_like(const Tensor& x) {
  return Tensor::empty(x.shape(), x.order(), Tensor::Padding::ZeroButBetweenRows);
}

NormSources sources(const Tensor& dy, const Tensor& passed, const Tensor& x) {
  return {.x = x.data(x.order()),
          .dy = dy.data(x.order()),
          .more_dy = nullptr,
          .passed = bits_of(passed),
          .added = nullptr};
}

}  // namespace

NormGradientSums norm_gradient_sums(const Tensor& dy, const Tensor& passed, const Tensor& x,
                                    const std::vector<float>& mean,
                                    const std::vector<float>& inverse_deviation) {
  GradientPasses passes(x);
  const NormSources from = sources(dy, passed, x);
  passes.tasks().for_each(
      [&](int64_t group, int64_t task) { passes.sum(group, task, mean, from, {}); });
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
  const GradientPasses passes(x);
  const NormSources from = sources(dy, passed, x);
  Tensor dx = empty_like(x);
  NormTargets into{.dx = dx.mutable_data(x.order())};
  if (dg != nullptr) {
    *dg = empty_like(x);
    into.dg = dg->mutable_data(x.order());
  }
  passes.tasks().for_each(
      [&](int64_t group, int64_t task) { passes.map(group, task, slopes, from, into); });
  return dx;
}

namespace {

// Where g and dx go: each value is read before what takes its place is written.
struct NormGradientArrays {
  explicit NormGradientArrays(const ImageNormInputs& in) {
    const bool has_more = in.more_dy.defined();
    if (has_more || (in.needs_g && in.passed.defined())) {
      g = in.may_write_dy ? in.dy : empty_like(in.x);
    }
    // What is written last is what was read last; what has to stay, stays.
    if (in.earlier.defined() && in.earlier.unique()) {
      dx = in.earlier;
    } else if (!in.needs_g && g.defined()) {
      dx = g;
    } else if (!in.needs_g && in.may_write_dy) {
      dx = in.dy;
    } else if (has_more && in.more_dy.unique()) {
      dx = in.more_dy;
    } else {
      dx = empty_like(in.x);
    }
  }
  Tensor g;  // undefined: no array of its own
  Tensor dx;
};

}  // namespace

ImageNormGradient norm_gradient(
    const ImageNormInputs& in, const std::vector<float>& mean,
    const std::vector<float>& inverse_deviation,
    const std::function<NormSlopes(size_t, double, double)>& slopes_of) {
  NormGradientArrays arrays(in);
  const Order order = in.x.order();
  GradientPasses passes(in.x);
  const bool keeps_g = arrays.g.defined();
  NormSources of_sum = sources(in.dy, in.passed, in.x);
  of_sum.more_dy = data_of(in.more_dy, order);
  const NormTargets first{.dg = keeps_g ? arrays.g.mutable_data(order) : nullptr};
  NormSources of_map =
      keeps_g ? sources(arrays.g, Tensor(), in.x) : sources(in.dy, in.passed, in.x);
  of_map.added = data_of(in.earlier, order);
  const NormTargets second{.dx = arrays.dx.mutable_data(order)};
  ImageNormGradient result{
      .sums = {std::vector<double>(mean.size()), std::vector<double>(mean.size())},
      .dx = arrays.dx,
      .g = !in.needs_g ? Tensor()
           : keeps_g   ? arrays.g
                       : in.dy};
  std::vector<NormSlopes> slopes(mean.size());
  const auto conclude = [&](int64_t group) {
    for (int64_t lane = 0; lane < (passes.runs().has_channel_lanes() ? kRunLanes : 1); ++lane) {
      const int64_t channel = passes.runs().channel(group, lane);
      if (channel >= passes.runs().channels()) break;
      const auto c = static_cast<size_t>(channel);
      const auto [g, gx] = passes.sums_of(channel);
      result.sums.g[c] = g;
      result.sums.gx[c] = gx * static_cast<double>(inverse_deviation[c]);
      slopes[c] = slopes_of(c, result.sums.g[c], result.sums.gx[c]);
    }
  };
  const auto sum = [&](int64_t group, int64_t task) {
    passes.sum(group, task, mean, of_sum, first);
  };
  const auto map = [&](int64_t group, int64_t task) {
    passes.map(group, task, slopes, of_map, second);
  };
  const int64_t groups = passes.tasks().groups(), tasks = passes.tasks().count();
  if (tasks == 1) {
    parallel_blocks(groups, [&](int64_t group) {
      sum(group, 0);
      conclude(group);
      map(group, 0);
    });
    return result;
  }
  for (int64_t group = 0; group < groups; ++group) {
    parallel_blocks(tasks, [&](int64_t task) { sum(group, task); });
    conclude(group);
    parallel_blocks(tasks, [&](int64_t task) { map(group, task); });
  }
  return result;
}

}  // namespace lacuna
#endif  // HWY_ONCE
