#include "lacuna/layers/norms.h"

#include <fmt/core.h>

#include <memory>
#include <string>
#include <vector>

#include "lacuna/framework/autograd/ops/norm.h"
#include "lacuna/framework/core/error.h"
#include "lacuna/framework/nn/layer_options.hpp"

namespace lacuna {
namespace {

// The reason why their units cannot be removed.
constexpr const char* kAllFeatures = "normalizes over all features together";

bool is_eps(double eps) { return eps > 0.0 && eps <= 1e30; }

ParameterPtr filled(int64_t size, double value) {
  return std::make_shared<Parameter>(Shape{size}, Initializer::constant(value));
}

template <class Options>
Options checked(const char* type, const Options& options) {
  if (options.features >= 1 && is_eps(options.eps)) return options;
  throw ConfigError(
      fmt::format("{}: features must be at least 1 and eps above 0, found {} and {:g}", type,
                  options.features, options.eps));
}

enum class At { First, Last };

// Returns the input, whose size in a dimension must equal the weight's.
Shape fitting(const Module& layer, const Parameter& weight, const Shape& input, At at) {
  const int64_t size = weight.shape()[0];
  const bool is_last = at == At::Last;
  if (input.rank() >= 1 && (is_last ? input.features() : input[0]) == size) return input;
  const std::string number = std::to_string(size);
  throw ShapeError(
      fmt::format("layer '{}' ({}): a weight of shape {} needs examples of shape [{}], found {}",
                  layer.path(), layer.type(), weight.shape().to_string(),
                  is_last ? "..., " + number : number + ", ...", input.to_string()));
}

// A layer norm or an RMS norm.
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

std::string mean_of_features(OnnxGraph& graph, const std::string& x) {
  return graph.add("ReduceMean", {x}, {{"axes", std::vector<int64_t>{-1}}});
}

// x / √(mean of x² + eps) · weight.
std::string write_scaling(OnnxGraph& graph, const Module& layer, double eps, const std::string& x) {
  const std::string mean = mean_of_features(graph, graph.add("Mul", {x, x}));
  const std::string root =
      graph.add("Sqrt", {graph.add("Add", {mean, graph.scalar(static_cast<float>(eps))})});
  return graph.add("Mul",
                   {graph.add("Div", {x, root}), graph.parameter(*own_parameter(layer, "weight"))});
}

std::string write_rms_norm(OnnxGraph& graph, const RmsNorm& layer, const std::string& x,
                           const Shape&) {
  return write_scaling(graph, layer, layer.options().eps, x);
}

std::string write_layer_norm(OnnxGraph& graph, const LayerNorm& layer, const std::string& x,
                             const Shape&) {
  const std::string centred = graph.add("Sub", {x, mean_of_features(graph, x)});
  const std::string scaled = write_scaling(graph, layer, layer.options().eps, centred);
  return graph.add("Add", {scaled, graph.parameter(*own_parameter(layer, "bias"))});
}

// Writes each group as a channel of an instance normalization.
std::string write_group_norm(OnnxGraph& graph, const GroupNorm& layer, const std::string& x,
                             const Shape& example) {
  const int64_t channels = layer.options().channels, groups = layer.options().groups;
  std::vector<int64_t> whole{0}, by_channel{channels};
  for (int i = 0; i < example.rank(); ++i) whole.push_back(example[i]);
  by_channel.resize(static_cast<size_t>(example.rank()), 1);
  const std::string normal = graph.add(
      "InstanceNormalization",
      {graph.reshape(x, {0, groups, -1}), graph.floats("ones", Tensor::full({groups}, 1.0f)),
       graph.floats("zeros", Tensor::full({groups}, 0.0f))},
      {{"epsilon", static_cast<float>(layer.options().eps)}});
  const auto of_channels = [&](const char* name) {
    return graph.reshape(graph.parameter(*own_parameter(layer, name)), by_channel);
  };
  const std::string scaled =
      graph.add("Mul", {graph.reshape(normal, whole), of_channels("weight")});
  return graph.add("Add", {scaled, of_channels("bias")});
}

}  // namespace

LayerNorm::LayerNorm(const Options& options)
    : options_(checked("layer_norm", options)),
      weight_(register_parameter("weight", filled(options.features, 1.0))),
      bias_(register_parameter("bias", filled(options.features, 0.0))) {}

Shape LayerNorm::output_shape(const Shape& input) const {
  return fitting(*this, *weight_, input, At::Last);
}

Variable LayerNorm::forward(const Variable& input) {
  return layer_norm(input, Variable::of(weight_), Variable::of(bias_), {.eps = options_.eps});
}

RmsNorm::RmsNorm(const Options& options)
    : options_(checked("rms_norm", options)),
      weight_(register_parameter("weight", filled(options.features, 1.0))) {}

Shape RmsNorm::output_shape(const Shape& input) const {
  return fitting(*this, *weight_, input, At::Last);
}

Variable RmsNorm::forward(const Variable& input) {
  return rms_norm(input, Variable::of(weight_), {.eps = options_.eps});
}

GroupNorm::GroupNorm(const Options& options) : options_(options) {
  const int64_t channels = options.channels, groups = options.groups;
  if (channels < 1 || groups < 1 || channels % groups != 0) {
    throw ConfigError(
        fmt::format("group_norm: channels must be divisible by groups, and both at least 1, found "
                    "{} channels and {} groups",
                    channels, groups));
  }
  if (!is_eps(options.eps)) {
    throw ConfigError(fmt::format("group_norm: eps must be above 0, found {:g}", options.eps));
  }
  weight_ = register_parameter("weight", filled(channels, 1.0));
  bias_ = register_parameter("bias", filled(channels, 0.0));
}

Shape GroupNorm::output_shape(const Shape& input) const {
  return fitting(*this, *weight_, input, At::First);
}

Variable GroupNorm::forward(const Variable& input) {
  return group_norm(input, Variable::of(weight_), Variable::of(bias_),
                    {.groups = options_.groups, .eps = options_.eps});
}

void register_norms(LayerRegistry& registry) {
  registry.add("layer_norm", "normalization over the last dimension: eps, features",
               {.make = make_feature_norm<LayerNorm>,
                .onnx = onnx_form(write_layer_norm),
                .units = units_fixed(kAllFeatures)});
  registry.add("rms_norm", "division by the root of the mean square: eps, features",
               {.make = make_feature_norm<RmsNorm>,
                .onnx = onnx_form(write_rms_norm),
                .units = units_fixed(kAllFeatures)});
  registry.add("group_norm",
               "normalization over groups of an example's channels: groups, eps, channels",
               {.make = make_group_norm,
                .onnx = onnx_form(write_group_norm),
                .units = units_fixed("normalizes over groups of channels")});
}

}  // namespace lacuna
