// The golden models: which files there are, how a CIFAR ResNet is written down, comparing arrays.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <limits>
#include <map>
#include <memory>
#include <optional>
#include <regex>
#include <string>
#include <vector>

#include "golden/golden.h"
#include "lacuna/framework/core/error.h"
#include "lacuna/framework/core/random.h"
#include "lacuna/framework/io/storage/safetensors_file.hpp"
#include "lacuna/framework/io/yaml.h"
#include "lacuna/framework/layouts/layout.h"
#include "lacuna/framework/layouts/pattern.h"
#include "lacuna/framework/param/parameter.h"
#include "lacuna/framework/train/builtins.h"
#include "lacuna/framework/train/model_builder.hpp"
#include "lacuna/optimizers/adam.h"
#include "lacuna/optimizers/sgd.h"

namespace lacuna::golden {

/// What is checked of a model, by what its file's name begins with.
enum class ModelKind {
  ResNetTraining,   ///< resnet<depth>: outputs, gradients, running statistics, steps
  ResNetInference,  ///< resnet<depth>_cifar10: logits of trained weights, an accuracy
  Trajectories,     ///< conv_trajectories: as trajectories.h5
  Transformer,      ///< gpt2, bert, vit: outputs, gradients, steps
  OneShot,          ///< one_shot: layers, their inputs, and what they are pruned to
};

/// The kind of a file "NAME.h5"; nothing when it is unknown.
inline std::optional<ModelKind> model_kind(const std::string& name) {
  if (name.starts_with("one_shot")) return ModelKind::OneShot;
  for (const char* beginning : {"gpt2_", "bert_", "vit_"}) {
    if (name.starts_with(beginning)) return ModelKind::Transformer;
  }
  if (name.starts_with("conv_trajectories")) return ModelKind::Trajectories;
  if (std::regex_search(name, std::regex("^resnet[0-9]+_cifar10"))) {
    return ModelKind::ResNetInference;
  }
  if (std::regex_search(name, std::regex("^resnet[0-9]+"))) return ModelKind::ResNetTraining;
  return std::nullopt;
}

/// The path of a file of the folder `models`.
inline std::string model_path(const std::string& file) { return folder() + "/models/" + file; }

/// Names (without .h5) of the models of a kind. The test fails where a file is of no known kind,
/// and where there is none of this one.
inline std::vector<std::string> models(ModelKind kind) {
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(model_path(""))) {
    if (entry.path().extension() != ".h5") continue;
    const std::string name = entry.path().stem().string();
    const std::optional<ModelKind> found = model_kind(name);
    EXPECT_TRUE(found.has_value()) << "models/ holds a file that no test knows: " << name;
    if (found == kind) names.push_back(name);
  }
  std::ranges::sort(names);
  EXPECT_FALSE(names.empty()) << "models/ holds no file of kind " << static_cast<int>(kind);
  return names;
}

/// Within a part of the largest magnitude of what is expected: sums of many layers differ in order.
inline void expect_near_largest(const Tensor& found, const Tensor& expected,
                                const std::string& what, float tolerance = 1e-4f) {
  ASSERT_TRUE(found.defined()) << what;
  const std::vector<float> a = found.to_vector(), b = expected.to_vector();
  ASSERT_EQ(a.size(), b.size()) << what;
  ASSERT_FALSE(b.empty()) << what;
  float largest = 0.0f;
  for (const float value : b) largest = std::max(largest, std::abs(value));
  for (size_t i = 0; i < b.size(); ++i) {
    ASSERT_NEAR(a[i], b[i], tolerance * largest) << what << ", element " << i;
  }
}

/// A parameter's gradient, of the parameter's shape and row-major, in whatever order its layout has
/// it; zero where there is no position.
inline Tensor dense_gradient(const Parameter& parameter) {
  const Pattern& pattern = *parameter.pattern();
  return pattern.layout().to_dense(pattern, parameter.gradient().to_vector());
}

/// Arrays by name, as a network and its steps give them.
using Arrays = std::map<std::string, std::vector<float>>;

inline float largest_magnitude(const std::vector<float>& values) {
  float largest = 0.0f;
  for (const float value : values) largest = std::max(largest, std::abs(value));
  return largest;
}

inline float largest_difference(const std::vector<float>& a, const std::vector<float>& b) {
  if (a.size() != b.size()) return std::numeric_limits<float>::infinity();
  float largest = 0.0f;
  for (size_t i = 0; i < a.size(); ++i) largest = std::max(largest, std::abs(a[i] - b[i]));
  return largest;
}

/// Lines that say what is further from the expected than 1e-4 of the largest of its array, and
/// further than twice what nudged networks are from the one itself; none where nothing is. Of
/// largest values above `most` this counts.
inline std::string differences(const Arrays& found, const Arrays& expected,
                               const std::vector<Arrays>& nudged,
                               float most = std::numeric_limits<float>::infinity()) {
  std::string text;
  for (const auto& [name, values] : expected) {
    if (!found.contains(name)) {
      text += "there is no " + name + "\n";
      continue;
    }
    const std::vector<float>& own = found.at(name);
    float spread = 0.0f;
    for (const Arrays& other : nudged) {
      spread = std::max(spread, largest_difference(other.at(name), own));
    }
    const float largest = largest_magnitude(values);
    const float tolerance = 1e-4f * std::min(largest, most) + 2.0f * spread;
    const float difference = largest_difference(own, values);
    if (difference <= tolerance) continue;
    text += name + " differs by " + std::to_string(difference / largest) + " of the largest; " +
            std::to_string(tolerance / largest) + " may be\n";
  }
  for (const auto& [name, values] : found) {
    if (!expected.contains(name)) text += "the file has no " + name + "\n";
  }
  return text;
}

/// Whether rounding may explain a difference: of the project's own files it need not.
inline bool is_another_folder() { return std::getenv("LACUNA_GOLDEN_DIR") != nullptr; }

/// Multiplies every value by a number within 1e-6 of one, drawn by the seed: by as little as the
/// order of sums in float32 may change what it gives.
inline void nudge(Module& model, uint64_t seed) {
  for (const ParameterPtr& parameter : model.parameters()) {
    const CounterRng rng(seed, parameter->name());
    std::vector<float> values = parameter->to_dense().to_vector();
    for (size_t i = 0; i < values.size(); ++i) {
      values[i] *= 1.0f + 1e-6f * (2.0f * rng.uniform(i) - 1.0f);
    }
    parameter->assign(Tensor::from(parameter->shape(), values));
  }
}

/// A ResNet for CIFAR as He et al. (arXiv:1512.03385, section 4.2) have it: a convolution, three
/// stages of blocks, the mean over the image, a linear layer; shortcuts of option A.
struct CifarResNet {
  int64_t blocks = 0;           ///< in a stage
  int64_t stem = 0;             ///< channels that the first convolution gives
  std::vector<int64_t> widths;  ///< of the stages
  int64_t classes = 0;

  /// The depth is in the file's name; the sizes are those of the weights.
  static CifarResNet of(const std::string& name, const SafetensorsFile& weights) {
    const int64_t depth = std::stoll(name.substr(std::string("resnet").size()));
    CifarResNet net{.blocks = (depth - 2) / 6,
                    .stem = weights.tensor("conv1.weight").shape[0],
                    .widths = {},
                    .classes = 0};
    for (const char* stage : {"layer1", "layer2", "layer3"}) {
      net.widths.push_back(weights.tensor(std::string(stage) + ".0.conv2.weight").shape[0]);
    }
    net.classes = weights.tensor("linear.weight").shape[0];
    return net;
  }

  /// The `model` section of a configuration.
  std::string yaml() const {
    std::string text =
        "define:\n"
        "  basic_block:\n"
        "    arguments: {channels: null, stride: 1}\n"
        "    layers:\n"
        "      - type: residual\n"
        "        shortcut: subsample_pad\n"
        "        layers:\n"
        "          - {type: conv2d, name: conv1, out_channels: $channels, kernel: 3,"
        " stride: $stride, padding: 1, bias: false}\n"
        "          - {type: batch_norm, name: bn1}\n"
        "          - relu\n"
        "          - {type: conv2d, name: conv2, out_channels: $channels, kernel: 3, padding: 1,"
        " bias: false}\n"
        "          - {type: batch_norm, name: bn2}\n"
        "      - relu\n"
        "layers:\n"
        "  - {type: conv2d, name: conv1, out_channels: " +
        std::to_string(stem) +
        ", kernel: 3, padding: 1, bias: false}\n"
        "  - {type: batch_norm, name: bn1}\n"
        "  - relu\n";
    for (size_t stage = 0; stage < widths.size(); ++stage) {
      text += "  - {type: basic_block, name: layer" + std::to_string(stage + 1) +
              ", repeat: " + std::to_string(blocks) +
              ", channels: " + std::to_string(widths[stage]) +
              (stage == 0 ? "" : ", first: {stride: 2}") + "}\n";
    }
    return text +
           "  - global_average_pool\n"
           "  - {type: linear, name: linear, out_features: " +
           std::to_string(classes) + "}\n";
  }

  /// The names of all parameters and running statistics.
  std::vector<std::string> names() const {
    std::vector<std::string> all{"conv1.weight", "linear.weight", "linear.bias"};
    const auto norm = [&](const std::string& path) {
      for (const char* part : {"weight", "bias", "running_mean", "running_var"}) {
        all.push_back(path + "." + part);
      }
    };
    norm("bn1");
    for (size_t stage = 1; stage <= widths.size(); ++stage) {
      for (int64_t block = 0; block < blocks; ++block) {
        const std::string path =
            "layer" + std::to_string(stage) + "." + std::to_string(block) + ".";
        for (const char* number : {"1", "2"}) {
          all.push_back(path + "conv" + number + ".weight");
          norm(path + "bn" + number);
        }
      }
    }
    return all;
  }
};

/// A model from a `model` section.
inline std::unique_ptr<Sequential> build(const std::string& yaml, const std::string& name,
                                         const Shape& example_shape) {
  register_builtins();
  const Config section = parse_yaml(yaml, name);
  return build_model(model_layers(section), example_shape);
}

/// The value of an option in the text that torch prints of an optimizer ("… lr: 0.05 … momentum:
/// 0.9 …"). *Errors:* DataError when it is missing.
inline std::string option(const std::string& text, const std::string& name) {
  std::smatch found;
  if (!std::regex_search(text, found, std::regex("\\b" + name + ": (\\([^)]*\\)|\\S+)"))) {
    throw DataError("no " + name + " in: " + text);
  }
  return found[1].str();
}

/// *Errors:* DataError when the optimizer is another, or asks for what lacuna's does not have.
inline void require_optimizer(const std::string& text, const std::string& type) {
  if (text.starts_with(type + " ") && option(text, "maximize") == "False") return;
  throw DataError("not an optimizer that is known here: " + text);
}

inline SgdOptions sgd_options(const std::string& text) {
  require_optimizer(text, "SGD");
  const auto value = [&](const std::string& name) { return option(text, name); };
  return {.lr = std::stod(value("lr")),
          .momentum = std::stod(value("momentum")),
          .dampening = std::stod(value("dampening")),
          .weight_decay = std::stod(value("weight_decay")),
          .nesterov = value("nesterov") == "True"};
}

inline AdamWOptions adamw_options(const std::string& text) {
  require_optimizer(text, "AdamW");
  if (option(text, "amsgrad") != "False") throw DataError("AMSGrad is not known here: " + text);
  const std::string betas = option(text, "betas");  // "(0.9, 0.999)"
  const size_t comma = betas.find(',');
  return {.lr = std::stod(option(text, "lr")),
          .betas = {std::stod(betas.substr(1, comma - 1)), std::stod(betas.substr(comma + 1))},
          .eps = std::stod(option(text, "eps")),
          .weight_decay = std::stod(option(text, "weight_decay"))};
}

/// Pixels [.., channels, height, width] from 0 to 255, as the network was trained on them:
/// ((x / 255) − mean) / std for each channel.
inline Tensor normalized(const Tensor& pixels, const Tensor& mean, const Tensor& std) {
  Tensor out = Tensor::empty(pixels.shape());
  const Shape& shape = pixels.shape();
  const int64_t plane = shape[-1] * shape[-2], channels = shape[-3];
  for (int64_t i = 0; i < pixels.numel(); ++i) {
    const int64_t channel = i / plane % channels;
    out.mutable_data()[i] =
        (pixels.data()[i] / 255.0f - mean.data()[channel]) / std.data()[channel];
  }
  return out;
}

}  // namespace lacuna::golden
