#include "lacuna/layers/semi_sparse_activation.h"

#include "lacuna/framework/autograd/ops/keep.h"

namespace lacuna {

SemiSparseActivation::SemiSparseActivation(const Options& options) : options_(options) {
  require_keep_nm("semi_sparse_activation", Shape{options.m}, options.n, options.m);
}

Shape SemiSparseActivation::output_shape(const Shape& input) const {
  require_keep_nm("layer '" + path() + "' (semi_sparse_activation)", input, options_.n, options_.m);
  return input;
}

Variable SemiSparseActivation::forward(const Variable& input) {
  output_shape(input.shape());  // names the layer
  return keep_nm(input, options_.n, options_.m);
}

}  // namespace lacuna
