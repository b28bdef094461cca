// Pooling of images, and of sequences as images of height 1; a shortcut without weights.
#pragma once

#include <cstdint>
#include <optional>

#include "lacuna/framework/autograd/variable.h"
#include "lacuna/framework/core/convolution_shape.h"

namespace lacuna {

/// The largest value under the window at each place. Padding is never selected; of equal values,
/// the first is selected and gets the gradient. *Shapes:* x [batch, channels, height, width] →
/// [batch, channels, …]; x [batch, channels, length], with a window of height 1, → [batch,
/// channels, …]. *Errors:* ShapeError, also if padding is more than half the kernel.
Variable max_pool2d(const Variable& x, const Window& window);

struct AvgPoolOptions {
  bool count_include_pad = true;  ///< borders also divide by the kernel's size
};
/// The mean under the window at each place. *Shapes, errors:* as max_pool2d.
Variable avg_pool2d(const Variable& x, const Window& window, const AvgPoolOptions& options = {});

/// The mean of each channel. *Shapes:* x [batch, channels, height, width] or [batch, channels,
/// length] → [batch, channels]; any storage order.
Variable global_average_pool(const Variable& x);

/// Selects every stride-th row and column, and adds channels of zeros before and after: ResNet's
/// shortcut of option A. *Shapes:* x [batch, c, height, width] → [batch, channels, ⌈height/stride⌉,
/// ⌈width/stride⌉], with `before` channels of zeros before (absent: ⌊(channels − c) / 2⌋).
/// *Errors:* ShapeError if there are fewer channels than x has. *Source:* He et al.,
/// arXiv:1512.03385, section 3.3.
Variable subsample_pad(const Variable& x, Extent stride, int64_t channels,
                       std::optional<int64_t> before = std::nullopt);

}  // namespace lacuna
