// Random changes to training images: shifted, mirrored, partly covered.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "lacuna/framework/core/shape.h"
#include "lacuna/framework/core/tensor.h"

namespace lacuna {

/// What happens to an image, in this order, each time that it is drawn for training.
struct AugmentOptions {
  /// Pixels of padding on each side, out of which an image of the old size is cropped at random. In
  /// [0, smaller side of the image). Default 0: none.
  int64_t crop = 0;
  /// Mirror left and right with a probability of one half. Default: never.
  bool flip = false;
  /// Side of a square that is centred at a random pixel and clipped at the image's border; what it
  /// covers becomes 0 (after normalization). In [0, smaller side of the image). Default 0: none.
  /// *Source:* DeVries and Taylor, arXiv:1708.04552 (where an odd side loses one).
  int64_t cutout = 0;
  /// What padding holds, as inputs are normalized already: one value, or one per channel. Default
  /// 0; load_data gives what a byte of 0 becomes, so that it is as if padded before normalization.
  std::vector<float> padding{0.0f};

  /// Whether anything is to happen.
  bool any() const { return crop > 0 || flip || cutout > 0; }
  /// "crop 4, flip, cutout 8", or "none".
  std::string to_string() const;
};

/// Which of all possible changes an example gets: a pure function of these and of its index.
struct AugmentStream {
  uint64_t seed = 0;
  uint64_t epoch = 0;
};

/// *Errors:* DataError unless nothing is to happen, or `example_shape` is [rows, columns] or
/// [channels, rows, columns] and the options are within their ranges for it.
void require_augmentable(const AugmentOptions& options, const Shape& example_shape);

/// The images `inputs`, [n, …example shape] in row-major order, changed; image i is the example
/// `indices[i]`. *Requires* what require_augmentable does, and n indices.
/// *Cost:* a copy, on the calling thread.
Tensor augmented(const Tensor& inputs, std::span<const int64_t> indices,
                 const AugmentOptions& options, AugmentStream stream);

}  // namespace lacuna
