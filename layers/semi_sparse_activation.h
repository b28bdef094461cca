// The SemiSparseActivation layer: N:M sparse activations.
#pragma once

#include "lacuna/framework/nn/module.h"

namespace lacuna {

/// Keeps the n largest |x| of each m consecutive features of an example and makes the others zero,
/// in training and evaluation; the gradient passes to what was kept alone. Features of images are
/// their channels at each pixel, over which a convolution behind it sums. It stands before a
/// linear layer, after ReLU or squared ReLU, where many activations are zero already and it loses
/// least. A linear layer right behind it, with a dense weight, skips what was dropped in its
/// products where that is faster (autograd/ops/linear_sparse_input.hpp). *Shapes:* [..., features]
/// and [batch, channels, height, width], kept; features and channels divisible by m. *Source:*
/// Haziza et al., "Accelerating transformer inference and training with 2:4 activation sparsity",
/// 2025 (arXiv:2503.16672). *Cost:* a selection; a bit an element saved.
class SemiSparseActivation final : public Module {
 public:
  struct Options {
    int n = 2;  ///< kept of each m; 1 ≤ n ≤ m
    int m = 4;  ///< at most 16
  };

  SemiSparseActivation() : SemiSparseActivation(Options()) {}
  /// *Errors:* ConfigError when n and m are out of range.
  explicit SemiSparseActivation(const Options& options);

  std::string_view type() const override { return "semi_sparse_activation"; }
  const Options& options() const { return options_; }
  /// *Errors:* ShapeError, which names the layer, when m does not divide the features, or the
  /// channels of images.
  Shape output_shape(const Shape& input) const override;

 protected:
  Variable forward(const Variable& input) override;

 private:
  void require_fit(const Shape& input, int dimension) const;

  Options options_;
};

}  // namespace lacuna
