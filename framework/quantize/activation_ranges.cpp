#include "lacuna/framework/quantize/activation_ranges.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <span>

#include "lacuna/framework/autograd/weight_inputs.h"
#include "lacuna/framework/core/error.h"

namespace lacuna {
namespace {

// Values of one weight's inputs: first what they span, then how they are spread over it.
class Spread {
 public:
  void span_over(std::span<const float> values, const std::string& weight) {
    for (const float v : values) {
      if (!std::isfinite(v)) {
        throw DataError(
            fmt::format("the inputs of '{}' are NaN or infinite for some calibration examples, so "
                        "they have no range; check the data, or the run (lacuna inspect)",
                        weight));
      }
      low_ = std::min(low_, v);
      high_ = std::max(high_, v);
    }
    count_ += static_cast<int64_t>(values.size());
  }

  void require_range(const std::string& weight) const {
    if (count_ == 0) {
      throw StateError("the forward pass of the model never multiplies by '" + weight + "'");
    }
    if (low_ < high_) return;
    throw DataError(fmt::format(
        "the inputs of '{}' are all {} in the calibration examples, so their range is not known; "
        "give more or other examples, or exclude the weight with param_filter",
        weight, low_));
  }

  void count(std::span<const float> values) {
    bins_.resize(kBins);
    const double width = (static_cast<double>(high_) - low_) / kBins;
    for (const float v : values) {
      const auto bin = static_cast<int64_t>((static_cast<double>(v) - low_) / width);
      ++bins_[static_cast<size_t>(std::clamp<int64_t>(bin, 0, kBins - 1))];
    }
  }

  ActivationRange range(const QuantizeOptions& options) const {
    if (options.observer == QuantizeOptions::Observer::MinMax) {
      return {.grid = int8_grid(low_, high_)};
    }
    if (options.observer == QuantizeOptions::Observer::Mse) return least_squares();
    const double share = (100.0 - options.percentile) / 100.0;
    const bool has_negative = low_ < 0.0f;
    const auto most =
        static_cast<int64_t>(share * static_cast<double>(count_) / (has_negative ? 2.0 : 1.0));
    const double width = (static_cast<double>(high_) - low_) / kBins;
    size_t first = 0, end = kBins;
    int64_t below = 0, above = 0;
    while (has_negative && first + 1 < end && below + bins_[first] <= most) below += bins_[first++];
    while (end > first + 1 && above + bins_[end - 1] <= most) above += bins_[--end];
    const auto at = [&](size_t bin) {
      return static_cast<float>(low_ + width * static_cast<double>(bin));
    };
    return {.grid = int8_grid(first == 0 ? low_ : at(first), end == kBins ? high_ : at(end)),
            .clipped = static_cast<double>(below + above) / static_cast<double>(count_)};
  }

 private:
  // The squares lost when the bins' middles are clipped to [low, high] and rounded.
  double squares_lost(float low, float high) const {
    const Int8Grid grid = int8_grid(low, high);
    const double width = (static_cast<double>(high_) - low_) / kBins, scale = grid.scale;
    double sum = 0.0;
    for (size_t i = 0; i < bins_.size(); ++i) {
      if (bins_[i] == 0) continue;
      const double x = low_ + width * (static_cast<double>(i) + 0.5);
      const double step = std::clamp(std::nearbyint(x / scale) + grid.zero, 0.0, 255.0);
      const double lost = x - (step - grid.zero) * scale;
      sum += static_cast<double>(bins_[i]) * lost * lost;
    }
    return sum;
  }

  // Of each end in turn the reach that loses least, from all of it down to a fifth.
  ActivationRange least_squares() const {
    constexpr int kReaches = 80;
    constexpr float kLeast = 0.2f;
    float low = low_, high = high_;
    const auto improve = [&](float& end, float whole) {
      double least = squares_lost(low, high);
      float best = end;
      for (int i = 1; i < kReaches; ++i) {
        end = whole * (1.0f - (1.0f - kLeast) * static_cast<float>(i) / kReaches);
        const double lost = squares_lost(low, high);
        if (lost < least) {
          least = lost;
          best = end;
        }
      }
      end = best;
    };
    if (high_ > 0.0f) improve(high, high_);
    if (low_ < 0.0f) improve(low, low_);
    const double width = (static_cast<double>(high_) - low_) / kBins;
    int64_t outside = 0;
    for (size_t i = 0; i < bins_.size(); ++i) {
      const double x = low_ + width * (static_cast<double>(i) + 0.5);
      outside += x < low || x > high ? bins_[i] : 0;
    }
    return {.grid = int8_grid(low, high),
            .clipped = static_cast<double>(outside) / static_cast<double>(count_)};
  }

  static constexpr int64_t kBins = 8192;
  float low_ = std::numeric_limits<float>::infinity(), high_ = -low_;
  int64_t count_ = 0;
  std::vector<int64_t> bins_;
};

}  // namespace

std::vector<ActivationRange> activation_ranges(Module& model, const CalibrationRun& run,
                                               const std::vector<ParameterPtr>& weights,
                                               const QuantizeOptions& options) {
  std::vector<Spread> spreads(weights.size());
  const NoGrad no_grad;
  const auto visit_inputs = [&](const auto& visit) {
    const WatchWeightInputs watch(
        [&](const ParameterPtr& weight, const Variable& x, const ConvolutionShape*) {
          const auto found = std::ranges::find(weights, weight);
          if (found == weights.end()) return;
          const Tensor input = x.value().to(Order::RowMajor);
          visit(spreads[static_cast<size_t>(found - weights.begin())],
                std::span(input.data(), static_cast<size_t>(input.numel())), weight->name());
        });
    run(model);
  };
  visit_inputs([](Spread& spread, std::span<const float> values, const std::string& name) {
    spread.span_over(values, name);
  });
  for (size_t i = 0; i < weights.size(); ++i) spreads[i].require_range(weights[i]->name());
  if (options.observer != QuantizeOptions::Observer::MinMax) {
    visit_inputs([](Spread& spread, std::span<const float> values, const std::string&) {
      spread.count(values);
    });
  }
  std::vector<ActivationRange> ranges;
  for (const Spread& spread : spreads) ranges.push_back(spread.range(options));
  return ranges;
}

}  // namespace lacuna
