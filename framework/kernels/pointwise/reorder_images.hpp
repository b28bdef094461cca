// What conversions between the storage orders share: the transposition, and the orders of images.
#pragma once

#include <cstdint>

#include "lacuna/framework/core/tensor.h"

namespace lacuna {

/// to[column · to_stride + row] = from[row · from_stride + column].
using Transposition = void (*)(const float* from, int64_t from_stride, float* to, int64_t to_stride,
                               int64_t rows, int64_t columns);
/// The one for the active instruction set.
Transposition transposition();

/// `reordered` where one of the orders is of images.
Tensor reordered_images(const Tensor& tensor, Order order);

}  // namespace lacuna
