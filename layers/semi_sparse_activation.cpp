#include "lacuna/layers/semi_sparse_activation.h"

#include "lacuna/framework/autograd/ops/keep.h"
#include "lacuna/framework/autograd/ops/shape.h"

namespace lacuna {
namespace {

// From the end: the channels of images, else the last.
int feature_dimension(const Shape& example) { return example.rank() == 3 ? -3 : -1; }

}  // namespace

SemiSparseActivation::SemiSparseActivation(const Options& options) : options_(options) {
  require_keep_nm("semi_sparse_activation", Shape{options.m}, -1, options.n, options.m);
}

Shape SemiSparseActivation::output_shape(const Shape& input) const {
  require_fit(input, feature_dimension(input));
  return input;
}

void SemiSparseActivation::require_fit(const Shape& input, int dimension) const {
  require_keep_nm("layer '" + path() + "' (semi_sparse_activation)", input, dimension, options_.n,
                  options_.m);
}

Variable SemiSparseActivation::forward(const Variable& input) {
  const Shape& shape = input.shape();
  require_fit(shape, feature_dimension(shape.without_batch()));  // names the layer
  return with_channels_last(
      input, [this](const Variable& x) { return keep_nm(x, options_.n, options_.m); });
}

}  // namespace lacuna
