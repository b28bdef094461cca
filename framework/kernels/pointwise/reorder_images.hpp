// Conversions between the storage orders of images, for reorder.cpp.
#pragma once

#include <cstdint>

#include "lacuna/framework/core/tensor.h"
#include "lacuna/framework/kernels/pointwise/reorder.hpp"

namespace lacuna {

/// `reordered` if one of the orders is an order of images.
Tensor reordered_images(const Tensor& tensor, Order order);

}  // namespace lacuna
