// How values of a data file become a model's inputs: an example at a time, for any place they lie
// in.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "lacuna/framework/core/shape.h"
#include "lacuna/framework/data/dataset.h"

namespace lacuna {

/// A Normalization in float32. Of bytes b · scale + offset, with one value for each channel; of
/// floats (x − mean) · inverse_std, with one value for each feature.
struct InputScale {
  /// *Requires* a normalization that fits the examples.
  InputScale(const Normalization& normalization, const Shape& example, bool is_bytes);

  std::vector<float> scales = {}, offsets = {};      ///< of bytes
  std::vector<float> means = {}, inverse_stds = {};  ///< of floats
};

/// Channels of examples [channels, rows, columns]; all others are taken as one.
inline int64_t channels_of(const Shape& example) { return example.rank() == 3 ? example[0] : 1; }

/// An example of bytes, as an input. *Requires* as many scales as offsets, whose number divides
/// that of the bytes.
void scale_bytes(std::span<const uint8_t> row, std::span<const float> scales,
                 std::span<const float> offsets, float* out);
/// An example of floats. *Requires* a mean and an inverse_std for each.
void scale_floats(std::span<const float> row, const float* means, const float* inverse_stds,
                  float* out);

}  // namespace lacuna
