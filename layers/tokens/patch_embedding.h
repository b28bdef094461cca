// The PatchEmbedding layer.
#pragma once

#include <cstdint>

#include "lacuna/framework/core/convolution_shape.h"
#include "lacuna/framework/nn/affine_layer.h"

namespace lacuna {

/// Converts images to sequences: one vector per patch, row by row, by a convolution whose stride is
/// its kernel size. *Shapes:* [batch, channels, height, width] → [batch, (height / p) (width / p),
/// features]; parameters `weight` [features, channels, p, p] and `bias` [features].
class PatchEmbedding final : public AffineLayer {
 public:
  struct Options {
    int64_t channels = 0;
    int64_t features = 0;
    Extent patch{16, 16};
    bool bias = true;
    Extent image{0, 0};                     ///< the input images' size, if known, for layout auto
    WeightDraw init = WeightInit::Default;  ///< as in Conv2d
  };

  /// *Errors:* ConfigError if a size is below 1.
  explicit PatchEmbedding(const Options& options);

  std::string_view type() const override { return "patch_embedding"; }
  const Options& options() const { return options_; }
  /// *Errors:* ShapeError, also if patches do not cover the image.
  Shape output_shape(const Shape& input) const override;
  int64_t uses_per_weight(const Shape& example) const override { return output_shape(example)[0]; }
  bool gives_channels(const Shape&) const override { return false; }

 protected:
  Variable forward(const Variable& input) override;

 private:
  Options options_;
};

}  // namespace lacuna
