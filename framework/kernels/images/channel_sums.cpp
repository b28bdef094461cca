// Sums by channel: moments and plain sums.
#include "lacuna/framework/kernels/images/batch_norm.hpp"
#include "lacuna/framework/kernels/images/channel_passes.hpp"
#include "lacuna/framework/kernels/images/part_moments.hpp"
#include "lacuna/framework/kernels/instruction_set.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "lacuna/framework/kernels/images/channel_sums.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "lacuna/framework/kernels/images/norm_run.inc"

HWY_BEFORE_NAMESPACE();
namespace lacuna::HWY_NAMESPACE {
namespace {

// s += Σ (x − pivot), q += Σ (x − pivot)².
void statistics_run(const NormRun& all, const Lanes& pivot, LaneSums& s, LaneSums& q) {
  for (int64_t row = 0; row < all.rows; ++row) {
    const NormRun run = all.row(row);
    add_lane_sums(
        run.count, s, q,
        [&](int v, int64_t i, int64_t n) HWY_ATTR {
          ask_ahead(run.x, v, i);
          return hn::Sub(load_some(run.x + i, n), lanes_at(pivot, v));
        },
        [](int, int64_t, int64_t, Vector value) HWY_ATTR { return hn::Mul(value, value); });
  }
}

}  // namespace
}  // namespace lacuna::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace lacuna {
namespace {

HWY_EXPORT(statistics_run);

// Scalar forms, to check the vectorized ones.
void statistics_plainly(const NormRun& all, const Lanes& pivot, LaneSums& s, LaneSums& q) {
  for (int64_t row = 0; row < all.rows; ++row) {
    const NormRun run = all.row(row);
    for (int64_t i = 0; i < run.count; ++i) {
      const auto lane = static_cast<size_t>(i % kRunLanes);
      const double value = static_cast<double>(run.x[i]) - pivot[lane];
      s[lane] += value;
      q[lane] += value * value;
    }
  }
}

// Σ (x − pivot) and Σ (x − pivot)² of each channel; pivots by channel, or none.
std::vector<ChannelSums::Pair> sums_of(const ImageRuns& runs, const float* data,
                                       const std::vector<float>& pivot) {
  const auto run_sums =
      use_reference_kernels() ? statistics_plainly : HWY_DYNAMIC_DISPATCH(statistics_run);
  const ChannelTasks tasks(runs);
  ChannelSums sums(runs, tasks);
  tasks.for_each([&](int64_t group, int64_t task) {
    const Lanes lanes = pivot.empty() ? Lanes{} : lanes_of(runs, pivot, group);
    sums.sum(group, task, [&](int64_t part, LaneSums& s, LaneSums& q) {
      const ImageRuns::Run run = runs.run(group, part);
      run_sums(
          {.x = data + run.begin, .count = run.count, .rows = run.rows, .row_step = run.row_step},
          lanes, s, q);
    });
  });
  std::vector<ChannelSums::Pair> of_channels;
  for (int64_t channel = 0; channel < runs.channels(); ++channel) {
    of_channels.push_back(sums.of(channel));
  }
  return of_channels;
}

// The mean over the first values of a group: per lane if a lane is a channel, else of all.
Lanes first_means(const ImageRuns& runs, const float* data, int64_t group) {
  constexpr int64_t kValues = 16 * kRunLanes;
  const int64_t present = runs.lanes(group, 0);
  LaneSums sums{}, counts{};
  int64_t seen = 0;
  runs.for_each_row(group, 0, [&](int64_t begin, int64_t count) {
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
  const auto channels = static_cast<size_t>(runs.channels());
  // Differences from a value near the mean, so that a large mean costs no digits.
  std::vector<float> pivot(channels);
  for (int64_t group = 0; runs.parts() > 0 && group < runs.groups(); ++group) {
    const Lanes first = first_means(runs, data, group);
    const bool has_lanes = runs.has_channel_lanes();
    const int64_t channel = has_lanes ? group * kRunLanes : group;
    std::copy_n(first.begin(), has_lanes ? runs.lanes(group, 0) : 1, pivot.begin() + channel);
  }
  const std::vector<ChannelSums::Pair> sums = sums_of(runs, data, pivot);
  ChannelStatistics statistics{std::vector<double>(channels), std::vector<double>(channels)};
  const auto n = static_cast<double>(runs.values_of_channel());
  for (size_t c = 0; c < channels; ++c) {
    const double distance = sums[c].s / n;
    statistics.mean[c] = static_cast<double>(pivot[c]) + distance;
    // A NaN remains NaN.
    const double variance = sums[c].q / n - distance * distance;
    statistics.variance[c] = variance < 0.0 ? 0.0 : variance;
  }
  return statistics;
}

PartMoments::PartMoments(int64_t channels, int64_t parts)
    : channels_(channels), parts_(parts), moments_(static_cast<size_t>(channels * parts)) {}

void PartMoments::take(int64_t part, const ImageSlabs& images, const SlabPart& at,
                       const float* slabs) {
  const auto run_sums =
      use_reference_kernels() ? statistics_plainly : HWY_DYNAMIC_DISPATCH(statistics_run);
  const int64_t examples = std::min(kImageSlabWidth, images.batch - at.slab * kImageSlabWidth);
  const int64_t width = at.columns.end - at.columns.begin;
  const auto pixels = static_cast<double>((at.rows.end - at.rows.begin) * width);
  for (int64_t channel = 0; channel < channels_; ++channel) {
    const float* first = slabs + images.line(at.slab, channel, at.rows.begin, at.columns.begin);
    double near = 0.0;
    for (int64_t i = 0; i < examples; ++i) near += static_cast<double>(first[i]);
    Lanes pivot;
    pivot.fill(static_cast<float>(near / static_cast<double>(examples)));
    LaneSums s{}, q{};
    run_sums({.x = first,
              .count = width * kImageSlabWidth,
              .rows = at.rows.end - at.rows.begin,
              .row_step = images.row_lines() * kImageSlabWidth},
             pivot, s, q);
    double sum = 0.0, squares = 0.0;
    for (size_t i = 0; i < static_cast<size_t>(examples); ++i) sum += s[i], squares += q[i];
    const double count = pixels * static_cast<double>(examples), distance = sum / count;
    moments_[static_cast<size_t>(part * channels_ + channel)] = {
        .count = count,
        .mean = static_cast<double>(pivot[0]) + distance,
        .squares = squares - sum * distance};
  }
}

ChannelStatistics PartMoments::joined() const {
  ChannelStatistics statistics;
  for (int64_t channel = 0; channel < channels_; ++channel) {
    Moments all;
    for (int64_t part = 0; part < parts_; ++part) {
      all.join(moments_[static_cast<size_t>(part * channels_ + channel)]);
    }
    statistics.mean.push_back(all.mean);
    // A NaN remains NaN.
    const double variance = all.squares / all.count;
    statistics.variance.push_back(variance < 0.0 ? 0.0 : variance);
  }
  return statistics;
}

Tensor sum_channels(const Tensor& x) {
  const ImageRuns runs(x.shape(), x.order());
  Tensor total = Tensor::empty(Shape{runs.channels()});
  float* into = total.mutable_data();
  for (const ChannelSums::Pair& sums : sums_of(runs, x.data(x.order()), {})) {
    *into++ = static_cast<float>(sums.s);
  }
  return total;
}

}  // namespace lacuna
#endif  // HWY_ONCE
