// The configuration of small residual convolutional networks that train in a moment.
#pragma once

#include <string>

namespace lacuna {

/// ResNet's basic block as the template `block`, to be put behind "model:" and before `layers`: its
/// shortcut has no weights.
inline constexpr const char* kBasicBlock = R"(
  define:
    block:
      arguments: {channels: null, stride: 1}
      layers:
        - type: residual
          shortcut: subsample_pad
          layers:
            - {type: conv2d, name: conv1, out_channels: $channels, kernel: 3, stride: $stride, padding: 1, bias: false}
            - {type: batch_norm, name: bn1}
            - relu
            - {type: conv2d, name: conv2, out_channels: $channels, kernel: 3, padding: 1, bias: false}
            - {type: batch_norm, name: bn2}
        - relu
)";

/// What stands behind "model:": a stem of 3 to 8 channels, a block of 8 and one of 16.
inline const std::string kTinyConvolutionModel = std::string(kBasicBlock) + R"(  layers:
    - {type: conv2d, name: conv1, out_channels: 8, kernel: 3, stride: 2, padding: 1, bias: false}
    - {type: batch_norm, name: bn1}
    - relu
    - {type: max_pool, kernel: 2}
    - {type: block, name: layer1, channels: 8}
    - {type: block, name: layer2, channels: 16, stride: 2}
    - global_average_pool
    - {type: linear, name: linear, out_features: 10}
)";

/// Its convolutions and their channels; the weights of the blocks are those that a filter
/// "layer*.conv*.weight" takes.
inline constexpr const char* kTinyConvolutionFilter = "layer*.conv*.weight";

}  // namespace lacuna
