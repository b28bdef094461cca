// The configuration of a small convolutional network of sequences that trains in a moment.
#pragma once

#include <string>

namespace lacuna {

/// The layers, to be put behind "model:", for examples of 28 channels and a length of 28, as glyphs
/// are whose rows count as channels: a stem, a residual block, a pooling, a last convolution.
inline constexpr const char* kTinySequenceModel = R"(
    - {type: conv1d, name: stem, out_channels: 16, kernel: 5, stride: 2, padding: 2, bias: false}
    - {type: batch_norm, name: bn}
    - relu
    - type: residual
      layers:
        - {type: conv1d, name: conv1, out_channels: 16, kernel: 3, padding: 1, bias: false}
        - {type: batch_norm, name: bn1}
        - relu
        - {type: conv1d, name: conv2, out_channels: 16, kernel: 3, padding: 2, dilation: 2}
        - {type: batch_norm, name: bn2}
    - relu
    - {type: max_pool, kernel: 2}
    - {type: conv1d, name: conv3, out_channels: 32, kernel: 3}
    - {type: batch_norm, name: bn3}
    - relu
    - global_average_pool
    - {type: linear, name: fc, out_features: 10}
)";

/// Its convolutions but the stem, of 16 · 16 · 3, 16 · 16 · 3 and 32 · 16 · 3 weights.
inline constexpr const char* kTinySequenceFilter = "conv*.weight";

}  // namespace lacuna
