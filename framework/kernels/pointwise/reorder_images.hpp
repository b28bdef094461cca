// Conversions between the storage orders of images, for reorder.cpp.
#pragma once

#include <cstdint>

#include "lacuna/framework/core/tensor.h"
#include "lacuna/framework/kernels/pointwise/reorder.hpp"

namespace lacuna {

/// `reordered` where one of the orders is of images.
Tensor reordered_images(const Tensor& tensor, Order order);

}  // namespace lacuna
