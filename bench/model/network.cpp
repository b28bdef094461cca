#include "model/network.h"

#include "lacuna/framework/config/names.h"
#include "lacuna/framework/core/error.h"
#include "lacuna/framework/io/yaml.h"
#include "lacuna/framework/layouts/cost/cost_model.hpp"
#include "lacuna/framework/train/model_builder.hpp"
#include "lacuna/layers/convolutions/conv2d.h"
#include "model/transformer.h"

namespace lacuna::bench {
namespace {

constexpr const char* kResNet20 = "{type: cifar_resnet, depth: 20}";

// For small images: the stem is 3 x 3 with stride 1, and there is no max-pool behind it.
constexpr const char* kResNet18 = R"(
define:
  basic_block:
    arguments: {channels: null, stride: 1}
    layers:
      - type: residual
        shortcut:
          - {type: conv2d, name: downsample.0, out_channels: $channels, kernel: 1, stride: $stride, bias: false, init: kaiming_normal}
          - {type: batch_norm, name: downsample.1}
        layers:
          - {type: conv2d, name: conv1, out_channels: $channels, kernel: 3, stride: $stride, padding: 1, bias: false, init: kaiming_normal}
          - {type: batch_norm, name: bn1}
          - relu
          - {type: conv2d, name: conv2, out_channels: $channels, kernel: 3, padding: 1, bias: false, init: kaiming_normal}
          - {type: batch_norm, name: bn2}
      - relu
layers:
  - {type: conv2d, name: conv1, out_channels: 64, kernel: 3, padding: 1, bias: false, init: kaiming_normal}
  - {type: batch_norm, name: bn1}
  - relu
  - {type: basic_block, name: layer1, repeat: 2, channels: 64}
  - {type: basic_block, name: layer2, repeat: 2, channels: 128, first: {stride: 2}}
  - {type: basic_block, name: layer3, repeat: 2, channels: 256, first: {stride: 2}}
  - {type: basic_block, name: layer4, repeat: 2, channels: 512, first: {stride: 2}}
  - global_average_pool
  - {type: linear, name: fc, out_features: 200}
)";

// That of configs/cifar10_wrn16_2_rigl90.yaml.
constexpr const char* kWideResNet = R"(
define:
  wide_block:
    arguments: {channels: null, stride: 1}
    layers:
      - {type: batch_norm, name: bn1}
      - relu
      - type: residual
        shortcut: {type: conv2d, name: shortcut, out_channels: $channels, kernel: 1, stride: $stride, bias: false, init: kaiming_normal}
        layers:
          - {type: conv2d, name: conv1, out_channels: $channels, kernel: 3, stride: $stride, padding: 1, bias: false, init: kaiming_normal}
          - {type: batch_norm, name: bn2}
          - relu
          - {type: conv2d, name: conv2, out_channels: $channels, kernel: 3, padding: 1, bias: false, init: kaiming_normal}
layers:
  - {type: conv2d, name: conv1, out_channels: 16, kernel: 3, padding: 1, bias: false, init: kaiming_normal}
  - {type: wide_block, name: block1, repeat: 2, channels: 32}
  - {type: wide_block, name: block2, repeat: 2, channels: 64, first: {stride: 2}}
  - {type: wide_block, name: block3, repeat: 2, channels: 128, first: {stride: 2}}
  - {type: batch_norm, name: bn}
  - relu
  - global_average_pool
  - {type: linear, name: fc, out_features: 10}
)";

}  // namespace

std::unique_ptr<Sequential> Network::build() const {
  const Config section = parse_yaml(model, name);
  auto built = build_model(model_layers(section, {.num_classes = classes}), Shape{3, size, size});
  for (Module* module : built->modules()) {
    auto* convolution = dynamic_cast<Conv2d*>(module);
    if (convolution == nullptr) continue;
    ConvolutionShape shape = convolution->weight()->convolution.value();
    shape.batch = batch;
    convolution->set_algorithms(fastest_algorithms(shape));
  }
  built->initialize(0);
  return built;
}

Network find_network(const std::string& name) {
  if (name == "resnet20") {
    return {.name = name, .title = "ResNet-20", .model = kResNet20, .classes = 10};
  }
  if (name == "resnet18") {
    return {.name = name,
            .title = "ResNet-18",
            .model = kResNet18,
            .size = 64,
            .batch = 32,
            .classes = 200};
  }
  if (name == "wrn16_2") {
    return {.name = name,
            .title = "WRN-16-2",
            .model = kWideResNet,
            .classes = 10,
            .stays_dense = "shortcut"};
  }
  std::vector<std::string> names = {"resnet20", "resnet18", "wrn16_2"};
  names.insert(names.end(), transformer_names().begin(), transformer_names().end());
  throw ConfigError("--model: there is no model '" + name + "'; " + suggest_name(name, names));
}

std::vector<ParameterPtr> convolution_weights(const Module& model) {
  std::vector<ParameterPtr> weights;
  for (const ParameterPtr& parameter : model.parameters()) {
    if (parameter->use == WeightUse::Convolution && parameter->shape().rank() == 4) {
      weights.push_back(parameter);
    }
  }
  return weights;
}

std::vector<ParameterPtr> sparse_weights(const Module& model, const Network& network) {
  std::vector<ParameterPtr> weights = convolution_weights(model);
  weights.erase(weights.begin());
  if (network.stays_dense.empty()) return weights;
  std::erase_if(weights, [&](const ParameterPtr& weight) {
    return weight->name().find(network.stays_dense) != std::string::npos;
  });
  return weights;
}

}  // namespace lacuna::bench
