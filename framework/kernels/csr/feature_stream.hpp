// The nonzeros of activations as a stream (csr.hpp) whose rows are the features: the sparse matrix
// in the weight gradient if the activations are sparse and the weight is not.
#pragma once

#include <cstdint>

#include "lacuna/framework/core/array.h"
#include "lacuna/framework/kernels/csr/csr.hpp"

namespace lacuna {

struct FeatureStream {
  CsrStream stream = {};     ///< [features, examples], in one block
  Array<float> values = {};  ///< in stream order; four more at the end
};

/// Drops zeros, and makes a stream of the other values. Within a tile, rows are sorted by their
/// number of nonzeros, as by csr_stream. *Shapes:* slabs of [batch, features], zero in the padding.
/// *Cost:* two passes over the slabs, on several threads; SIMD with AVX-512.
FeatureStream feature_stream(const float* slabs, int64_t batch, int64_t features);

}  // namespace lacuna
