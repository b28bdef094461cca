// How much arithmetic a model's pass is.
#pragma once

#include <cstdint>

#include "lacuna/framework/nn/module.h"

namespace lacuna::bench {

/// What a pass computes.
enum class Extent {
  Forward,
  Training,  ///< and all gradients
};

/// Multiplications and additions of the nonzeros of its weights, and of attention, for so many
/// examples of this shape.
double operations_of(const Module& model, const Shape& example, int64_t examples, Extent extent);

}  // namespace lacuna::bench
