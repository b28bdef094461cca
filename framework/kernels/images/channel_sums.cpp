// Sums by channel: moments, what the gradient of a normalization needs of them, and plain sums.
#include "lacuna/framework/kernels/images/batch_norm.h"

#include "lacuna/framework/core/parallel.h"
#include "lacuna/framework/kernels/instruction_set.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "lacuna/framework/kernels/images/channel_sums.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "lacuna/framework/kernels/images/norm_run.inc"

HWY_BEFORE_NAMESPACE();
namespace lacuna::HWY_NAMESPACE {
namespace {

// Adds two sums a lane: those of `first(i, count)` and of `second(…, what first gave)`.
template <class First, class Second>
HWY_INLINE void add_lane_sums(int64_t count, LaneSums& s, LaneSums& q, const First& first,
                              const Second& second) {
  constexpr int64_t kChunk = 128 * kRunLanes;  // floats that are summed as floats
  const Floats d;
  for (int64_t begin = 0; begin < count; begin += kChunk) {
    const int64_t size = std::min(kChunk, count - begin);
    Vector sums[kRunVectors], squares[kRunVectors];
    for (int v = 0; v < kRunVectors; ++v) sums[v] = squares[v] = hn::Zero(d);
    for_each_vector(size, [&](int v, int64_t i, int64_t n) HWY_ATTR {
      Vector value = first(v, begin + i, n), product = second(v, begin + i, n, value);
      if (n < kVectorLanes) {
        const auto valid = hn::FirstN(d, static_cast<size_t>(n));
        value = hn::IfThenElseZero(valid, value);
        product = hn::IfThenElseZero(valid, product);
      }
      sums[v] = hn::Add(sums[v], value);
      squares[v] = hn::Add(squares[v], product);
    });
    HWY_ALIGN float lanes[kRunLanes];
    for (int v = 0; v < kRunVectors; ++v) hn::Store(sums[v], d, lanes + v * kVectorLanes);
    for (size_t i = 0; i < s.size(); ++i) s[i] += lanes[i];
    for (int v = 0; v < kRunVectors; ++v) hn::Store(squares[v], d, lanes + v * kVectorLanes);
    for (size_t i = 0; i < q.size(); ++i) q[i] += lanes[i];
  }
}

// s += Σ (x − pivot), q += Σ (x − pivot)².
void statistics_run(const NormRun& run, const Lanes& pivot, LaneSums& s, LaneSums& q) {
  add_lane_sums(
      run.count, s, q,
      [&](int v, int64_t i, int64_t n)
          HWY_ATTR { return hn::Sub(load_some(run.x + i, n), lanes_at(pivot, v)); },
      [](int, int64_t, int64_t, Vector value) HWY_ATTR { return hn::Mul(value, value); });
}

// s += Σ g, q += Σ g (x − mean).
void gradient_run(const NormRun& run, const Lanes& mean, LaneSums& s, LaneSums& q) {
  add_lane_sums(
      run.count, s, q, [&](int, int64_t i, int64_t n) HWY_ATTR { return gradient_at(run, i, n); },
      [&](int v, int64_t i, int64_t n, Vector g)
          HWY_ATTR { return hn::Mul(g, hn::Sub(load_some(run.x + i, n), lanes_at(mean, v))); });
}

}  // namespace
}  // namespace lacuna::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace lacuna {
namespace {

HWY_EXPORT(statistics_run);
HWY_EXPORT(gradient_run);

// Scalar forms, for checking the rest.
void statistics_plainly(const NormRun& run, const Lanes& pivot, LaneSums& s, LaneSums& q) {
  for (int64_t i = 0; i < run.count; ++i) {
    const auto lane = static_cast<size_t>(i % kRunLanes);
    const double value = static_cast<double>(run.x[i]) - pivot[lane];
    s[lane] += value;
    q[lane] += value * value;
  }
}
void gradient_plainly(const NormRun& run, const Lanes& mean, LaneSums& s, LaneSums& q) {
  for (int64_t i = 0; i < run.count; ++i) {
    const auto lane = static_cast<size_t>(i % kRunLanes);
    const double g = gradient_at(run, i);
    s[lane] += g;
    q[lane] += g * (static_cast<double>(run.x[i]) - mean[lane]);
  }
}
struct Sums {
  std::vector<double> s, q;  // by channel
};

// `add(group, part, s, q)` of every part, summed part after part, in a few tasks for each group.
template <class Add>
Sums sum_parts(const ImageRuns& runs, const Add& add) {
  const int64_t groups = runs.groups(), tasks = task_parts(runs), parts = runs.parts();
  const int64_t lanes = runs.has_channel_lanes() ? kRunLanes : 1;
  std::vector<double> partial(static_cast<size_t>(groups * tasks * lanes * 2));
  parallel_blocks(groups * tasks, [&](int64_t index) {
    const int64_t group = index / tasks, task = index % tasks;
    double* into = partial.data() + index * lanes * 2;
    for (int64_t part = parts * task / tasks; part < parts * (task + 1) / tasks; ++part) {
      LaneSums s{}, q{};
      add(group, part, s, q);
      for (int64_t i = 0; i < runs.lanes(group, part); ++i) {
        const int64_t lane = runs.has_channel_lanes() ? i : 0;
        into[lane * 2] += s[static_cast<size_t>(i)];
        into[lane * 2 + 1] += q[static_cast<size_t>(i)];
      }
    }
  });
  const auto channels = static_cast<size_t>(runs.channels());
  Sums sums{std::vector<double>(channels), std::vector<double>(channels)};
  for (int64_t channel = 0; channel < runs.channels(); ++channel) {
    const int64_t group = channel / lanes, lane = channel % lanes;
    for (int64_t task = 0; task < tasks; ++task) {
      const auto at = static_cast<size_t>(((group * tasks + task) * lanes + lane) * 2);
      sums.s[static_cast<size_t>(channel)] += partial[at];
      sums.q[static_cast<size_t>(channel)] += partial[at + 1];
    }
  }
  return sums;
}

// The mean over some first values of a group, a lane's where it is a channel, else of all.
Lanes first_means(const ImageRuns& runs, const float* data, int64_t group) {
  constexpr int64_t kValues = 16 * kRunLanes;
  const int64_t present = runs.lanes(group, 0);
  LaneSums sums{}, counts{};
  int64_t seen = 0;
  runs.for_each(group, 0, [&](int64_t begin, int64_t count) {
    for (int64_t i = 0; i < count && seen < kValues; ++i, ++seen) {
      if (i % kRunLanes >= present) continue;
      const size_t lane = runs.has_channel_lanes() ? static_cast<size_t>(i % kRunLanes) : 0;
      sums[lane] += static_cast<double>(data[begin + i]);
      ++counts[lane];
    }
  });
  Lanes means{};
  for (size_t i = 0; i < means.size(); ++i) {
    if (counts[i] > 0.0) means[i] = static_cast<float>(sums[i] / counts[i]);
  }
  return means;
}

}  // namespace

ChannelStatistics channel_statistics(const Tensor& x) {
  const ImageRuns runs(x.shape(), x.order());
  const float* data = x.data(x.order());
  const auto run_sums =
      use_reference_kernels() ? statistics_plainly : HWY_DYNAMIC_DISPATCH(statistics_run);
  const auto channels = static_cast<size_t>(runs.channels());
  // Differences from a value near the channel's mean, so that a mean far from zero costs no digits.
  std::vector<float> pivot(channels);
  for (int64_t group = 0; runs.parts() > 0 && group < runs.groups(); ++group) {
    const Lanes first = first_means(runs, data, group);
    const bool has_lanes = runs.has_channel_lanes();
    const int64_t channel = has_lanes ? group * kRunLanes : group;
    std::copy_n(first.begin(), has_lanes ? runs.lanes(group, 0) : 1, pivot.begin() + channel);
  }
  const Sums sums = sum_parts(runs, [&](int64_t group, int64_t part, LaneSums& s, LaneSums& q) {
    const Lanes lanes = lanes_of(runs, pivot, group);
    runs.for_each(group, part, [&](int64_t begin, int64_t count) {
      run_sums({.x = data + begin, .count = count}, lanes, s, q);
    });
  });
  ChannelStatistics statistics{std::vector<double>(channels), std::vector<double>(channels)};
  const auto n = static_cast<double>(runs.values_of_channel());
  for (size_t c = 0; c < channels; ++c) {
    const double distance = sums.s[c] / n;
    statistics.mean[c] = static_cast<double>(pivot[c]) + distance;
    // A NaN stays one.
    const double variance = sums.q[c] / n - distance * distance;
    statistics.variance[c] = variance < 0.0 ? 0.0 : variance;
  }
  return statistics;
}

NormGradientSums norm_gradient_sums(const Tensor& dy, const Tensor& y, const Tensor& x,
                                    const std::vector<float>& mean,
                                    const std::vector<float>& inverse_deviation) {
  const ImageRuns runs(x.shape(), x.order());
  const auto run_sums =
      use_reference_kernels() ? gradient_plainly : HWY_DYNAMIC_DISPATCH(gradient_run);
  const float* x_data = x.data(x.order());
  const float* dy_data = dy.data(x.order());
  const float* y_data = y.defined() ? y.data(x.order()) : nullptr;
  const Sums sums = sum_parts(runs, [&](int64_t group, int64_t part, LaneSums& s, LaneSums& q) {
    const Lanes lanes = lanes_of(runs, mean, group);
    runs.for_each(group, part, [&](int64_t begin, int64_t count) {
      run_sums({.x = x_data + begin,
                .dy = dy_data + begin,
                .y = y_data == nullptr ? nullptr : y_data + begin,
                .count = count},
               lanes, s, q);
    });
  });
  NormGradientSums result{sums.s, sums.q};
  for (size_t c = 0; c < result.gx.size(); ++c) {
    result.gx[c] *= static_cast<double>(inverse_deviation[c]);
  }
  return result;
}

Tensor sum_channels(const Tensor& x) {
  const ImageRuns runs(x.shape(), x.order());
  const auto run_sums =
      use_reference_kernels() ? statistics_plainly : HWY_DYNAMIC_DISPATCH(statistics_run);
  const float* data = x.data(x.order());
  const Sums sums = sum_parts(runs, [&](int64_t group, int64_t part, LaneSums& s, LaneSums& q) {
    runs.for_each(group, part, [&](int64_t begin, int64_t count) {
      run_sums({.x = data + begin, .count = count}, Lanes{}, s, q);
    });
  });
  Tensor total = Tensor::empty(Shape{runs.channels()});
  for (size_t c = 0; c < sums.s.size(); ++c) {
    total.mutable_data()[c] = static_cast<float>(sums.s[c]);
  }
  return total;
}

}  // namespace lacuna
#endif  // HWY_ONCE
