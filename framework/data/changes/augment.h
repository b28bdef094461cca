// Random changes to training images: shifted, mirrored, recoloured, partly covered, mixed.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "lacuna/framework/core/shape.h"
#include "lacuna/framework/core/tensor.h"
#include "lacuna/framework/data/changes/rand_augment.h"

namespace lacuna {

/// The changes to an image, in this order, each time that it is drawn for training.
struct AugmentOptions {
  /// Pixels of padding on each side, out of which an image of the old size is cropped at random. In
  /// [0, smaller side of the image). Default 0: none.
  int64_t crop = 0;
  /// Mirror left and right with a probability of one half. Default: never.
  bool flip = false;
  /// Operations of RandAugment, and their strength. Default: none.
  RandAugmentOptions rand_augment = {};
  /// Side of a square that is centred at a random pixel and clipped at the image's border; what it
  /// covers becomes 0 (after normalization). In [0, smaller side of the image). Default 0: none.
  /// *Source:* DeVries and Taylor, arXiv:1708.04552 (where an odd side loses one).
  int64_t cutout = 0;
  /// The value of padding, for inputs that are already normalized: one value, or one per channel.
  /// Default 0; load_data sets the normalized value of a byte of 0, as if padding came before
  /// normalization.
  std::vector<float> padding{0.0f};
  /// α > 0 of the Beta(α, α) distribution that shares of mixtures are drawn from: each example is
  /// mixed with another one of the dataset, both changed as above. In [0, 64]. Default 0: none.
  double mixup = 0.0;
  /// For rand_augment, which works on bytes: a byte b of an image is b · scale + offset as an
  /// input, for all channels or one each. load_data sets them.
  std::vector<float> byte_scales{1.0f}, byte_offsets{0.0f};

  /// Whether single images are changed.
  bool changes_images() const {
    return crop > 0 || flip || cutout > 0 || rand_augment.operations > 0;
  }
  /// Whether anything is changed.
  bool any() const { return changes_images() || mixup > 0.0; }
  /// "crop 4, flip, rand_augment 2 of magnitude 9, cutout 8, mixup 0.2", or "none".
  std::string to_string() const;
};

/// Which of all possible changes an example gets: a pure function of these and of its index.
struct AugmentStream {
  uint64_t seed = 0;
  uint64_t epoch = 0;
};

/// *Errors:* DataError if an option is out of range, or if single images are changed
/// (`changes_images`) and `example_shape` is not [rows, columns] or [channels, rows, columns], or
/// crop or cutout are not below the smaller side.
void require_augmentable(const AugmentOptions& options, const Shape& example_shape);

/// The images `inputs`, [n, …example shape] in row-major order, each changed on its own; image i is
/// the example `indices[i]`. *Requires* the conditions of require_augmentable, and n indices.
/// *Cost:* a copy, on the calling thread.
Tensor augmented(const Tensor& inputs, std::span<const int64_t> indices,
                 const AugmentOptions& options, AugmentStream stream);

}  // namespace lacuna
