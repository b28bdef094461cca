// The SemiSparseActivation layer: N:M sparse activations.
#pragma once

#include "lacuna/framework/nn/module.h"

namespace lacuna {

/// Keeps the n largest |x| of each m consecutive features of an example and sets the others to
/// zero, in training and evaluation; the gradient passes only to the kept ones. For images, the
/// features are the channels at each pixel, over which a following convolution sums. Use it before
/// a linear layer and after ReLU or squared ReLU, where many activations are already zero and least
/// is lost. A linear layer with a dense weight directly after it skips the dropped values in its
/// products if that is faster (autograd/ops/linear_sparse_input.hpp). *Shapes:* [..., features] and
/// [batch, channels, height, width], kept; features and channels divisible by m. *Source:* Haziza
/// et al., "Accelerating transformer inference and training with 2:4 activation sparsity", 2025
/// (arXiv:2503.16672). *Cost:* a selection; one bit per element is saved.
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
  /// *Errors:* ShapeError that names the layer if m does not divide the features, or the channels
  /// of images.
  Shape output_shape(const Shape& input) const override;

 protected:
  Variable forward(const Variable& input) override;

 private:
  void require_fit(const Shape& input, int dimension) const;

  Options options_;
};

}  // namespace lacuna
