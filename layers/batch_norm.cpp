#include "lacuna/layers/batch_norm.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <span>
#include <string>

#include "lacuna/framework/core/error.h"
#include "lacuna/framework/nn/layer_options.hpp"
#include "lacuna/framework/nn/sharded_batch.h"

namespace lacuna {
namespace {

// running ← (1 − momentum) running + momentum value, by channel.
void follow(Tensor& running, const std::vector<double>& values, double factor, double momentum) {
  float* into = running.mutable_data();
  for (size_t i = 0; i < values.size(); ++i) {
    into[i] = static_cast<float>((1.0 - momentum) * static_cast<double>(into[i]) +
                                 momentum * values[i] * factor);
  }
}

ChannelMoments moments_of(const Tensor& mean, const Tensor& variance) {
  const std::vector<float> m = mean.to_vector(), v = variance.to_vector();
  return {{m.begin(), m.end()}, {v.begin(), v.end()}};
}

LayerPtr make_batch_norm(const Config& options, const Shape& input) {
  require_channels(input);
  const auto channels = options.get<int64_t>("channels", input[0]);
  const std::vector<Config::Entry> keys = options.clone().entries();
  for (const auto& [key, value] : keys) {
    if (key != "momentum" || !value.is_null()) continue;
    value.error(
        "null, the average over all batches in PyTorch, is not supported; give a number in [0, 1], "
        "or leave this key out (0.1)");
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

std::string write_batch_norm(OnnxGraph& graph, const BatchNorm& layer, const std::string& x,
                             const Shape&) {
  if (layer.is_folded()) return x;
  if (!layer.options().track_running_stats) {
    refuse_onnx(layer,
                "it normalizes by the moments of each batch; train it with "
                "track_running_stats: true");
  }
  const Shape channels{layer.options().channels};
  const auto values = [&](const ParameterPtr& parameter, const char* what, float otherwise) {
    return parameter != nullptr ? graph.parameter(*parameter)
                                : graph.floats(what, Tensor::full(channels, otherwise));
  };
  return graph.add("BatchNormalization",
                   {x, values(layer.weight(), "weight", 1.0f), values(layer.bias(), "bias", 0.0f),
                    graph.floats("running_mean", layer.running_mean()),
                    graph.floats("running_var", layer.running_var())},
                   {{"epsilon", static_cast<float>(layer.options().eps)}});
}

UnitAxis units_of_batch_norm(UnitGraph& graph, const BatchNorm& layer, const UnitAxis& input,
                             const Shape& example) {
  const UnitGraph::Units units = graph.along(layer, input, example, 0);
  graph.gives(layer.weight(), 0, units);
  graph.gives(layer.bias(), 0, units);
  if (layer.options().track_running_stats) {
    graph.add_buffer(layer, "running_mean", units);
    graph.add_buffer(layer, "running_var", units);
  }
  graph.counts(layer, "channels", units);
  return {0, units};
}

}  // namespace

BatchNorm::BatchNorm(const Options& options) : options_(options) {
  if (options.channels < 1 || !(options.eps > 0.0 && options.eps <= 1e30) ||
      !(options.momentum >= 0.0 && options.momentum <= 1.0)) {
    throw ConfigError(
        fmt::format("batch_norm: channels must be at least 1, eps above 0 and momentum in [0, 1], "
                    "found {}, {:g} and {:g}",
                    options.channels, options.eps, options.momentum));
  }
  const Shape shape{options.channels};
  if (options.affine) {
    weight_ = register_parameter("weight",
                                 std::make_shared<Parameter>(shape, Initializer::constant(1.0)));
    bias_ =
        register_parameter("bias", std::make_shared<Parameter>(shape, Initializer::constant(0.0)));
  }
  if (options.track_running_stats) {
    running_mean_ = &register_buffer("running_mean", Tensor::zeros(shape));
    running_var_ = &register_buffer("running_var", Tensor::full(shape, 1.0f));
  }
}

Shape BatchNorm::output_shape(const Shape& input) const {
  if (input.rank() < 1 || input.rank() > 3 || input[0] != options_.channels) {
    throw ShapeError(fmt::format(
        "layer '{}' (batch_norm): {} channels need examples of shape [{}], [{}, length] or [{}, "
        "height, width], found {}",
        path(), options_.channels, options_.channels, options_.channels, options_.channels,
        input.to_string()));
  }
  return input;
}

// Training never makes it negative, but values read from a file may be anything.
void BatchNorm::require_variance() const {
  const std::span<const float> variance = running_var_->storage();
  const auto negative = std::ranges::find_if(variance, [](float v) { return v < 0.0f; });
  if (negative == variance.end()) return;
  throw StateError(fmt::format(
      "layer '{}' (batch_norm): a running_var must be at least 0, found {:g} of channel {}", path(),
      *negative, negative - variance.begin()));
}

std::optional<BatchNorm::Affine> BatchNorm::affine() const {
  if (running_mean_ == nullptr) return std::nullopt;
  const ChannelMoments moments = moments_of(*running_mean_, *running_var_);
  const auto value = [](const ParameterPtr& parameter, size_t i, double otherwise) {
    return parameter != nullptr ? static_cast<double>(parameter->values().data()[i]) : otherwise;
  };
  Affine affine;
  for (size_t i = 0; i < moments.mean.size(); ++i) {
    const double scale = value(weight_, i, 1.0) / std::sqrt(moments.variance[i] + options_.eps);
    affine.scale.push_back(scale);
    affine.shift.push_back(value(bias_, i, 0.0) - moments.mean[i] * scale);
  }
  return affine;
}

// Loading calls this function too.
StateDict BatchNorm::extra_state() const {
  if (!is_folded_) return {};
  throw StateError(
      fmt::format("layer '{}' (batch_norm) is folded into the weights before it: the model is for "
                  "inference, and is neither saved nor loaded",
                  path()));
}

void BatchNorm::mark_folded() {
  is_folded_ = true;
  folded_ = ParameterVersions({weight_, bias_});
}

Variable BatchNorm::forward(const Variable& input) {
  if (is_folded_) {
    if (training()) {
      throw StateError(
          fmt::format("layer '{}' (batch_norm) is folded into the weights before it: the model is "
                      "for inference, and cannot be trained",
                      path()));
    }
    folded_.require_unchanged(*this, "is folded into the weights before it");
    // Rows are not changed, nor is their storage order.
    return input.shape().rank() == 2 ? input : folded_batch_norm(input);
  }
  const Variable weight = weight_ != nullptr ? Variable::of(weight_) : Variable();
  const Variable bias = bias_ != nullptr ? Variable::of(bias_) : Variable();
  const BatchNormOptions options{.eps = options_.eps};
  if (!uses_batch()) {
    require_variance();
    return batch_norm(input, weight, bias, moments_of(*running_mean_, *running_var_),
                      MomentsOf::Elsewhere, options);
  }
  if (training() && current_shard() >= 0) {
    throw StateError(
        fmt::format("layer '{}' (batch_norm): its module runs the shards of a batch one by one, so "
                    "it sees only one of them; let the module override forward_in_shards, or train "
                    "with train.shards: 0",
                    path()));
  }
  const ChannelMoments moments = channel_moments(input);
  const auto values = static_cast<double>(input.shape().numel() / options_.channels);
  require_values(values, input.shape());
  learn(moments, values);
  return batch_norm(input, weight, bias, moments, MomentsOf::Batch, options);
}

void BatchNorm::require_values(double values, const Shape& input) const {
  if (values >= 2.0) return;
  if (training()) {
    throw ShapeError(fmt::format(
        "layer '{}' (batch_norm): training needs more than one value per channel, found {}; use a "
        "larger batch, or train.drop_last if it is the last one of an epoch",
        path(), input.to_string()));
  }
  throw ShapeError(fmt::format(
      "layer '{}' (batch_norm): track_running_stats is false, so a batch is normalized by its own "
      "moments, and needs more than one value per channel, found {}; evaluate or predict several "
      "examples together",
      path(), input.to_string()));
}

void BatchNorm::learn(const ChannelMoments& moments, double values) {
  if (!is_learning() || running_mean_ == nullptr) return;
  follow(*running_mean_, moments.mean, 1.0, options_.momentum);
  // The running variance is the unbiased variance of a sample.
  follow(*running_var_, moments.variance, values / (values - 1.0), options_.momentum);
}

std::vector<Variable> BatchNorm::forward_in_shards(std::span<const Variable> inputs) {
  if (is_folded_ || !training() || !uses_batch()) return Module::forward_in_shards(inputs);
  NormShards shards;
  for (const BatchShard& shard : sharded_batch()->shards()) shards.indices.push_back(shard.index);
  if (sharded_batch()->norms() == NormScope::Batch) shards.peers = sharded_batch()->peers();
  const JointMoments joint = channel_moments(inputs, shards);
  require_values(joint.values, inputs.front().shape());
  learn(joint.moments, joint.values);
  return batch_norm(inputs, weight_ != nullptr ? Variable::of(weight_) : Variable(),
                    bias_ != nullptr ? Variable::of(bias_) : Variable(), joint, shards,
                    {.eps = options_.eps});
}

void register_batch_norm(LayerRegistry& registry) {
  registry.add("batch_norm",
               "normalization of each channel over the batch: eps, momentum, affine, "
               "track_running_stats, channels",
               {.make = make_batch_norm,
                .onnx = onnx_form(write_batch_norm),
                .units = unit_form(units_of_batch_norm)});
}

}  // namespace lacuna
