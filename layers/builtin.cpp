#include "lacuna/layers/builtin.hpp"

#include <fmt/core.h>

#include <cmath>
#include <memory>
#include <string>

#include "lacuna/framework/core/error.h"
#include "lacuna/layers/activations.h"
#include "lacuna/layers/batch_norm.h"
#include "lacuna/layers/convolutions/conv1d.h"
#include "lacuna/layers/convolutions/conv2d.h"
#include "lacuna/layers/convolutions/pooling.h"
#include "lacuna/layers/dropout.h"
#include "lacuna/layers/flatten.h"
#include "lacuna/layers/layer_options.hpp"
#include "lacuna/layers/linear.h"
#include "lacuna/layers/norms.h"
#include "lacuna/layers/semi_sparse_activation.h"
#include "lacuna/layers/token_layers.hpp"

namespace lacuna {
namespace {

using LayerPtr = std::unique_ptr<Module>;

void require_channels(const Shape& input) {
  if (input.rank() >= 1) return;
  throw ShapeError("this layer needs examples of shape [channels, ...], its input has shape " +
                   input.to_string());
}

template <class Layer>
LayerPtr make_plain(const Config&, const Shape&) {
  return std::make_unique<Layer>();
}

LayerPtr make_linear(const Config& options, const Shape& input) {
  const auto out = options.required<int64_t>("out_features");
  return std::make_unique<Linear>(
      Linear::Options{.in_features = read_features(options, "in_features", input),
                      .out_features = require_at_least(options, "out_features", out, 1),
                      .bias = options.get("bias", true),
                      .init = read_weight_init(options, "init"),
                      .init_fan_in = read_fan_in(options, "init_fan_in")});
}

LayerPtr make_leaky_relu(const Config& options, const Shape&) {
  const auto slope = options.get<float>("negative_slope", 0.01f);
  if (!(slope >= 0.0f && std::isfinite(slope))) {
    options.at("negative_slope").fail("a finite number of at least 0");
  }
  return std::make_unique<LeakyReLU>(LeakyReLU::Options{.negative_slope = slope});
}

// *Errors:* ConfigError where they do not divide the channels.
int64_t read_groups(const Config& options, const Shape& input, int64_t out) {
  const auto groups = require_at_least(options, "groups", options.get<int64_t>("groups", 1), 1);
  if (input[0] % groups != 0 || out % groups != 0) {
    options.at("groups").error(
        fmt::format("{} groups do not divide the channels: {} come in, in shape {}, and {} go out",
                    groups, input[0], input.to_string(), out));
  }
  return groups;
}

LayerPtr make_conv1d(const Config& options, const Shape& input) {
  const auto out = options.required<int64_t>("out_channels");
  options.at("kernel");
  const int64_t in = read_channels(options, "in_channels", input, kSequences);
  const int64_t groups = read_groups(options, input, out);
  return std::make_unique<Conv1d>(
      Conv1d::Options{.in_channels = in,
                      .out_channels = require_at_least(options, "out_channels", out, 1),
                      .kernel = read_length(options, "kernel", 3, 1),
                      .stride = read_length(options, "stride", 1, 1),
                      .padding = read_length(options, "padding", 0, 0),
                      .dilation = read_length(options, "dilation", 1, 1),
                      .groups = groups,
                      .bias = options.get("bias", true),
                      .length = input[1],
                      .init = read_weight_init(options, "init"),
                      .init_fan_in = read_fan_in(options, "init_fan_in")});
}

LayerPtr make_conv2d(const Config& options, const Shape& input) {
  const auto out = options.required<int64_t>("out_channels");
  options.at("kernel");
  const int64_t in = read_channels(options, "in_channels", input, kImages);
  const int64_t groups = read_groups(options, input, out);
  return std::make_unique<Conv2d>(
      Conv2d::Options{.in_channels = in,
                      .out_channels = require_at_least(options, "out_channels", out, 1),
                      .kernel = read_extent(options, "kernel", {3, 3}, 1),
                      .stride = read_extent(options, "stride", {1, 1}, 1),
                      .padding = read_extent(options, "padding", {0, 0}, 0),
                      .dilation = read_extent(options, "dilation", {1, 1}, 1),
                      .groups = groups,
                      .bias = options.get("bias", true),
                      .image = {input[1], input[2]},
                      .init = read_weight_init(options, "init"),
                      .init_fan_in = read_fan_in(options, "init_fan_in")});
}

LayerPtr make_batch_norm(const Config& options, const Shape& input) {
  require_channels(input);
  const auto channels = options.get<int64_t>("channels", input[0]);
  const std::vector<Config::Entry> keys = options.clone().entries();
  for (const auto& [key, value] : keys) {
    if (key != "momentum" || !value.is_null()) continue;
    value.error(
        "null stands elsewhere for the average over all batches, which is not computed here; give "
        "a number in [0, 1], or leave this key out (0.1)");
  }
  const double eps = read_eps(options), momentum = options.get("momentum", 0.1);
  if (!(momentum >= 0.0 && momentum <= 1.0)) options.at("momentum").fail("a number in [0, 1]");
  return std::make_unique<BatchNorm>(
      BatchNorm::Options{.channels = require_at_least(options, "channels", channels, 1),
                         .eps = eps,
                         .momentum = momentum,
                         .affine = options.get("affine", true),
                         .track_running_stats = options.get("track_running_stats", true)});
}

// The window of a pooling over images, or over sequences as images of height 1.
Window read_pooling_window(const Config& options, const Shape& input) {
  options.at("kernel");
  if (input.rank() == kSequences.rank) {
    const int64_t kernel = read_length(options, "kernel", 2, 1);
    return LengthWindow{.kernel = kernel,
                        .stride = read_length(options, "stride", kernel, 1),
                        .padding = read_length(options, "padding", 0, 0)}
        .on_images();
  }
  const Extent kernel = read_extent(options, "kernel", {2, 2}, 1);
  return {.kernel = kernel,
          .stride = read_extent(options, "stride", kernel, 1),
          .padding = read_extent(options, "padding", {0, 0}, 0)};
}

LayerPtr make_max_pool(const Config& options, const Shape& input) {
  const Window window = read_pooling_window(options, input);
  const Extent dilation = input.rank() == kSequences.rank
                              ? Extent{1, read_length(options, "dilation", 1, 1)}
                              : read_extent(options, "dilation", {1, 1}, 1);
  return std::make_unique<MaxPool2d>(MaxPool2d::Options{.kernel = window.kernel,
                                                        .stride = window.stride,
                                                        .padding = window.padding,
                                                        .dilation = dilation});
}

LayerPtr make_avg_pool(const Config& options, const Shape& input) {
  const Window window = read_pooling_window(options, input);
  return std::make_unique<AvgPool2d>(
      AvgPool2d::Options{.kernel = window.kernel,
                         .stride = window.stride,
                         .padding = window.padding,
                         .count_include_pad = options.get("count_include_pad", true)});
}

LayerPtr make_subsample_pad(const Config& options, const Shape& input) {
  require_kind(input, kImages);
  const auto channels = options.get<int64_t>("channels", input[0]);
  return std::make_unique<SubsamplePad>(
      SubsamplePad::Options{.channels = require_at_least(options, "channels", channels, 1),
                            .stride = read_extent(options, "stride", {2, 2}, 1)});
}

LayerPtr make_gelu(const Config& options, const Shape&) {
  const auto approximate = options.get<std::string>("approximate", "none");
  if (approximate != "none" && approximate != "tanh") {
    options.at("approximate").fail("none or tanh");
  }
  return std::make_unique<GELU>(
      GELU::Options{approximate == "tanh" ? GELU::Approximate::Tanh : GELU::Approximate::None});
}

// A layer norm, or one by the root of the mean square.
template <class Norm>
LayerPtr make_feature_norm(const Config& options, const Shape& input) {
  typename Norm::Options layer;
  layer.eps = read_eps(options, layer.eps);
  layer.features = read_features(options, "features", input);
  return std::make_unique<Norm>(layer);
}

LayerPtr make_group_norm(const Config& options, const Shape& input) {
  require_channels(input);
  const double eps = read_eps(options);
  const auto groups = options.required<int64_t>("groups");
  require_at_least(options, "groups", groups, 1);
  const auto channels = options.get<int64_t>("channels", input[0]);
  if (channels != input[0]) {
    throw ShapeError(
        fmt::format("channels is {}, but the examples that reach this layer have shape {}",
                    channels, input.to_string()));
  }
  if (channels % groups != 0) {
    options.at("groups").fail(fmt::format("a divisor of the {} channels of examples of shape {}",
                                          channels, input.to_string()));
  }
  return std::make_unique<GroupNorm>(
      GroupNorm::Options{.channels = channels, .groups = groups, .eps = eps});
}

LayerPtr make_dropout(const Config& options, const Shape&) {
  const double p = options.get("p", 0.5);
  if (!(p >= 0.0 && p < 1.0)) options.at("p").fail("a probability in [0, 1)");
  return std::make_unique<Dropout>(Dropout::Options{.p = p});
}

LayerPtr make_semi_sparse_activation(const Config& options, const Shape&) {
  const auto m = require_at_least(options, "m", options.get<int64_t>("m", 4), 1);
  const auto n = require_at_least(options, "n", options.get<int64_t>("n", 2), 1);
  if (m > 16) options.at("m").fail("a number from 1 to 16");
  if (n > m) options.at("n").fail(fmt::format("at most m, which is {}", m));
  return std::make_unique<SemiSparseActivation>(
      SemiSparseActivation::Options{.n = static_cast<int>(n), .m = static_cast<int>(m)});
}

}  // namespace

void register_layers(LayerRegistry& registry) {
  registry.add("linear",
               "y = x Wᵀ + b: out_features, in_features, bias, init, init_fan_in, tied_to",
               {.make = make_linear, .has_fan_in = true, .outputs_key = "out_features"});
  registry.add("conv1d",
               "y = w ∗ x + b along sequences: out_channels, kernel, stride, padding, dilation, "
               "groups, bias, in_channels, init, init_fan_in",
               {.make = make_conv1d, .has_fan_in = true});
  registry.add("conv2d",
               "y = w ∗ x + b: out_channels, kernel, stride, padding, dilation, groups, bias, "
               "in_channels, init, init_fan_in",
               {.make = make_conv2d, .has_fan_in = true});
  registry.add("batch_norm",
               "normalization of each channel over the batch: eps, momentum, affine, "
               "track_running_stats, channels",
               make_batch_norm);
  registry.add("max_pool", "largest value of each window: kernel, stride, padding, dilation",
               make_max_pool);
  registry.add("avg_pool", "mean of each window: kernel, stride, padding, count_include_pad",
               make_avg_pool);
  registry.add("global_average_pool", "mean of each channel", make_plain<GlobalAveragePool>);
  registry.add("subsample_pad",
               "every stride-th pixel, zeros for the missing channels: channels, stride",
               make_subsample_pad);
  registry.add("relu", "max(x, 0)", make_plain<ReLU>);
  registry.add("leaky_relu", "x where x ≥ 0, else negative_slope (0.01) x", make_leaky_relu);
  registry.add("squared_relu", "max(x, 0)²", make_plain<SquaredReLU>);
  registry.add("gelu", "x Φ(x): approximate (none, tanh)", make_gelu);
  registry.add("silu", "x σ(x)", make_plain<SiLU>);
  registry.add("sigmoid", "1 / (1 + e⁻ˣ)", make_plain<Sigmoid>);
  registry.add("tanh", "tanh x", make_plain<Tanh>);
  registry.add("swiglu", "silu(gate) · up of [gate | up]", make_plain<SwiGLU>);
  registry.add("layer_norm", "normalization over the last dimension: eps, features",
               make_feature_norm<LayerNorm>);
  registry.add("rms_norm", "division by the root of the mean square: eps, features",
               make_feature_norm<RmsNorm>);
  registry.add("group_norm",
               "normalization over groups of an example's channels: groups, eps, channels",
               make_group_norm);
  registry.add("dropout", "zeroes elements while training: p", make_dropout);
  registry.add("semi_sparse_activation", "keeps the n largest |x| of each m features: n (2), m (4)",
               make_semi_sparse_activation);
  registry.add("flatten", "all of an example's dimensions in one", make_plain<Flatten>);
  register_token_layers(registry);
}

}  // namespace lacuna
