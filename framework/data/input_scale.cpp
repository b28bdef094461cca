#include "lacuna/framework/data/input_scale.hpp"

#include <cstddef>

namespace lacuna {
namespace {

// The value for one of `groups` equal runs of features, of a list with one value for all of them,
// or for each of some larger runs.
double value_for(const std::vector<double>& values, size_t group, size_t groups) {
  return values[group * values.size() / groups];
}

}  // namespace

InputScale::InputScale(const Normalization& normalization, const Shape& example, bool is_bytes) {
  const auto groups = static_cast<size_t>(is_bytes ? channels_of(example) : example.numel());
  for (size_t group = 0; group < groups; ++group) {
    const double mean = value_for(normalization.mean, group, groups);
    const double std = value_for(normalization.std, group, groups);
    if (is_bytes) {
      scales.push_back(static_cast<float>(1.0 / (255.0 * std)));
      offsets.push_back(static_cast<float>(-mean / std));
    } else {
      means.push_back(static_cast<float>(mean));
      inverse_stds.push_back(static_cast<float>(1.0 / std));
    }
  }
}

void scale_bytes(std::span<const uint8_t> row, std::span<const float> scales,
                 std::span<const float> offsets, float* out) {
  const auto plane = static_cast<int64_t>(row.size() / scales.size());
  const uint8_t* bytes = row.data();
  for (size_t channel = 0; channel < scales.size(); ++channel) {
    // Of its own, so that the compiler vectorizes the loop.
    const float scale = scales[channel], offset = offsets[channel];
    for (int64_t i = 0; i < plane; ++i) out[i] = static_cast<float>(bytes[i]) * scale + offset;
    out += plane;
    bytes += plane;
  }
}

void scale_floats(std::span<const float> row, const float* means, const float* inverse_stds,
                  float* out) {
  const float* values = row.data();
  const auto features = static_cast<int64_t>(row.size());
  for (int64_t i = 0; i < features; ++i) out[i] = (values[i] - means[i]) * inverse_stds[i];
}

}  // namespace lacuna
