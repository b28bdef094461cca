// RandAugment: images changed by some operations out of fourteen.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "lacuna/framework/core/random.h"

namespace lacuna {

/// How many changes an image gets, and how strong they are.
struct RandAugmentOptions {
  static constexpr int64_t kMostOperations = 16;
  static constexpr double kLargestMagnitude = 30.0;

  /// One after the other, in [0, 16]. Default 0: none.
  int64_t operations = 0;
  /// In [0, 30]; 0 leaves images unchanged, except for AutoContrast and Equalize. Default 9.
  double magnitude = 9.0;
  friend bool operator==(const RandAugmentOptions&, const RandAugmentOptions&) = default;
};

/// The operations, with m = magnitude / 30 and ± a random sign. Geometry takes the nearest pixel,
/// and black if there is none.
enum class ImageOperation {
  Identity,
  ShearX,        ///< by ±0.3 m pixels per row, from the middle
  ShearY,        ///< the same for columns
  TranslateX,    ///< by ±0.453 m of the width
  TranslateY,    ///< the same for the height
  Rotate,        ///< by ±30 m degrees
  Brightness,    ///< 1 ± 0.9 m times as far from black
  Color,         ///< the same from grey; one channel stays
  Contrast,      ///< the same from the mean of the grey image
  Sharpness,     ///< the same from the image smoothed over 3 × 3 pixels, inside the border
  Posterize,     ///< the highest 8 − 4 m bits, rounded, are kept
  Solarize,      ///< what is 255 (1 − m) or more is inverted
  AutoContrast,  ///< each channel is stretched to [0, 255]
  Equalize,      ///< each channel's histogram is made flat
};
inline constexpr int kImageOperations = 14;

/// Pixels of one image, [channels, height, width].
struct ByteImage {
  std::span<uint8_t> pixels;
  int64_t channels, height, width;
};

/// `strength` is ± m where the operation has a sign, else m. *Cost:* a few passes over the image.
void apply(ImageOperation operation, double strength, const ByteImage& image);

/// The words from which `rand_augment` chooses an example's operations: eight for each operation,
/// one example after the other. A pure function of the generator and the example.
std::vector<uint32_t> draw_operations(const RandAugmentOptions& options, const CounterRng& rng,
                                      std::span<const int64_t> examples);

/// Applies operations that are drawn for an example alone, each of the fourteen as likely as any
/// other. `words` are those that draw_operations gives for it. *Source:* Cubuk et al.,
/// arXiv:1909.13719; the strengths are torchvision's.
void rand_augment(const RandAugmentOptions& options, std::span<const uint32_t> words,
                  const ByteImage& image);

}  // namespace lacuna
