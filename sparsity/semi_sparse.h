// SemiSparse: the weight in use is the largest part of a dense master weight in an N:M or block
// pattern.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>

#include "lacuna/sparsity/straight_through.h"

namespace lacuna {

struct SemiSparseOptions {
  /// The pattern of the weight in use. Required.
  PatternShape pattern = {};
  /// For block patterns; N:M determines its own sparsity.
  SparsityTarget sparsity = {};
  ParameterFilter param_filter = {};
  LayoutOption layout = {};
  /// Steps for which a mask is kept.
  int64_t every = 1;
  /// λ of SR-STE: λ · w is added to the gradient where the mask excludes the weight; 0 is plain
  /// straight-through.
  double decay = 0.0;

  /// The keys pattern, sparsity, param_filter, layout, every, decay. *Errors:* ConfigError.
  static SemiSparseOptions from_config(const Config& entry, uint64_t seed);
};

/// A dense master weight is trained; the forward uses its largest part in an N:M or block pattern,
/// chosen again every step (or every k), and the gradient with respect to that part goes straight
/// through to the whole master. When the algorithm releases a parameter, the master remains: a
/// later phase starts from the dense weight. *Sources:* Mishra et al., "Accelerating sparse deep
/// neural networks", 2021 (arXiv:2104.08378); Zhou et al., "Learning N:M fine-grained structured
/// sparse neural networks from scratch", ICLR 2021 (arXiv:2102.04010): SR-STE. *Cost:* dense weight
/// gradient and states; the selection.
class SemiSparse final : public StraightThrough {
 public:
  /// *Errors:* ConfigError without a pattern, if `every` is below 1, if `decay` is negative or not
  /// finite, or if the sparsity is not constant.
  explicit SemiSparse(const SemiSparseOptions& options);

  std::string_view type() const override { return "semi_sparse"; }
  FirstMasks first_masks() const override { return FirstMasks::Largest; }
  void forecast(Forecast& forecast) const override;

 protected:
  void add_to_gradient(const SparseWeight& weight, Tensor& gradient) const override;

 private:
  float decay_;
};

/// Makes linear layers of a model use their weights in semi-structured form, by globs on the
/// weights' full names ("blocks.*.fc1.weight", or "blocks.*.fc1"): {{"*.fc1", {.pattern =
/// PatternShape::nm(2, 4)}}}. The model trains on as before; `optimizer.apply(*result)` makes the
/// optimizer train the dense masters. *Errors:* ConfigError if a glob matches no linear layer's
/// weight.
std::unique_ptr<SparsityAlgorithm> swap_linear_with_semi_sparse(
    Module& model, const std::map<std::string, SemiSparseOptions>& layers);
/// The inverse: the dense masters become the weights again, with their optimizer states. The
/// algorithm is destroyed.
void swap_semi_sparse_with_linear(std::unique_ptr<SparsityAlgorithm> swapped);

}  // namespace lacuna
