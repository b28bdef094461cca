// Pooling of images, and the shortcut without weights. Inputs and outputs are row-major images
// unless documented otherwise.
#pragma once

#include <cstdint>
#include <vector>

#include "lacuna/framework/core/convolution_shape.h"
#include "lacuna/framework/core/tensor.h"

namespace lacuna {

/// The largest pixel under the window at each place, and its index in its plane (the first of equal
/// ones; a NaN if there is one). Padding is never selected. *Shapes:* x [batch, channels, height,
/// width] → [batch, channels, output].
struct MaxPool {
  Tensor y;
  std::vector<int32_t> index;  ///< of y's elements
};
MaxPool max_pool(const Tensor& x, const Window& window);
Tensor max_pool_gradient(const Tensor& dy, const std::vector<int32_t>& index, const Shape& shape);

/// Whether the divisor of an average counts padding under the window.
enum class CountPadding { No, Yes };
Tensor avg_pool(const Tensor& x, const Window& window, CountPadding count);
Tensor avg_pool_gradient(const Tensor& dy, const Window& window, CountPadding count,
                         const Shape& shape);

/// The mean of each plane. *Shapes:* x [batch, channels, height, width] in any order →
/// [batch, channels], row-major.
Tensor plane_means(const Tensor& x);
/// Its gradient, in an order of images.
Tensor plane_means_gradient(const Tensor& dy, const Shape& shape, Order order);

/// Selects every `stride`-th row and column, with `before` channels of zeros before the image's,
/// and the rest of `channels` after them. *Shapes:* x [batch, c, height, width] → [batch, channels,
/// ⌈height / stride⌉, ⌈width / stride⌉], in the order of x.
Tensor subsample_pad(const Tensor& x, Extent stride, int64_t channels, int64_t before);
Tensor subsample_pad_gradient(const Tensor& dy, Extent stride, int64_t before, const Shape& shape);

}  // namespace lacuna
