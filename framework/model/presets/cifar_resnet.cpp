// The residual networks of He et al. for CIFAR (arXiv:1512.03385, section 4.2), with the names of
// the files that others have trained: ResNet-20, 32, 44, 56, 110.
#include "lacuna/framework/model/presets/preset.hpp"

namespace lacuna::presets {
namespace {

constexpr const char* kResNetKeys = R"(
arguments:
  depth: 20
  width: 16
  num_labels: 10
)";

constexpr const char* kBlock = R"(
basic_block:
  arguments: {channels: null, stride: 1}
  layers:
    - type: residual
      shortcut: subsample_pad
      layers:
        - {type: conv2d, name: conv1, out_channels: $channels, kernel: 3, stride: $stride, padding: 1, bias: false, init: kaiming_normal}
        - {type: batch_norm, name: bn1}
        - relu
        - {type: conv2d, name: conv2, out_channels: $channels, kernel: 3, padding: 1, bias: false, init: kaiming_normal}
        - {type: batch_norm, name: bn2}
    - relu
)";

constexpr const char* kResNetLayers = R"(
- {type: conv2d, name: conv1, out_channels: $width, kernel: 3, padding: 1, bias: false, init: kaiming_normal}
- {type: batch_norm, name: bn1}
- relu
- {type: basic_block, name: layer1, repeat: $blocks, channels: $width}
- {type: basic_block, name: layer2, repeat: $blocks, channels: $(2 * width), first: {stride: 2}}
- {type: basic_block, name: layer3, repeat: $blocks, channels: $(4 * width), first: {stride: 2}}
- global_average_pool
- {type: linear, name: linear, out_features: $num_labels, init: kaiming_normal}
)";

Config resnet_section(Arguments& arguments) {
  const auto depth = arguments.at("depth").as<int64_t>();
  if (depth < 8 || depth % 6 != 2) {
    arguments.at("depth").fail("6 n + 2, for n blocks in each of three stages: 8, 14, 20, 32, …");
  }
  Config blocks((depth - 2) / 6);
  blocks.set_position(arguments.at("depth").position());
  arguments.define("blocks", blocks);
  return Config::map(
      {{"define", arguments.templates(kBlock)}, {"layers", arguments.layers(kResNetLayers)}});
}

}  // namespace

const Preset& cifar_resnet() {
  static const Preset preset{.name = "cifar_resnet",
                             .about = "ResNet-20, 32, 44, … for CIFAR: depth, width, num_labels",
                             .keys = kResNetKeys,
                             .section = resnet_section,
                             .widths = {"width"}};
  return preset;
}

}  // namespace lacuna::presets
