#include "lacuna/layers/linear.h"

#include <fmt/core.h>

#include <memory>
#include <string>

#include "lacuna/framework/autograd/int8/int8_linear.hpp"
#include "lacuna/framework/autograd/ops/linear.h"
#include "lacuna/framework/core/error.h"
#include "lacuna/framework/nn/layer_options.hpp"
#include "lacuna/framework/nn/tied_weight.h"

namespace lacuna {

Linear::Linear(const Options& options) : options_(options) {
  const int64_t in = options.in_features, out = options.out_features;
  if (in < 1 || out < 1) {
    throw ConfigError(fmt::format(
        "linear: in_features and out_features must be at least 1, found {} and {}", in, out));
  }
  make_parameters({out, in}, WeightUse::Linear, {options.bias, options.init, options.init_fan_in});
}

Shape Linear::output_shape(const Shape& input) const {
  if (input.rank() < 1 || input.features() != options_.in_features) {
    throw ShapeError(fmt::format(
        "layer '{}' (linear): a weight of shape {} needs examples of shape [..., {}], found {}",
        path(), weight()->shape().to_string(), options_.in_features, input.to_string()));
  }
  return input.with_features(options_.out_features);
}

void Linear::run_in_int8(std::shared_ptr<const Int8Linear> quantized) {
  int8_ = std::move(quantized);
  in_int8_ = ParameterVersions({weight(), bias()});
}

Variable Linear::forward(const Variable& input) {
  if (int8_ != nullptr) {
    in_int8_.require_unchanged(*this, "runs in int8");
    return int8_linear(input, int8_);
  }
  return linear(input, weight(), bias_variable());
}

Linear::Options Linear::Options::from_config(const Config& options, const Shape& input) {
  const auto out = options.required<int64_t>("out_features");
  return {.in_features = read_features(options, "in_features", input),
          .out_features = require_at_least(options, "out_features", out, 1),
          .bias = options.get("bias", true),
          .init = read_weight_init(options, "init"),
          .init_fan_in = read_fan_in(options, "init_fan_in")};
}

namespace {

LayerPtr make_linear(const Config& options, const Shape& input) {
  return std::make_unique<Linear>(Linear::Options::from_config(options, input));
}

// Also for a tied layer, which uses the weight of another layer.
std::string write_linear(OnnxGraph& graph, const Module& layer, const std::string& x,
                         const Shape& example) {
  const auto* tied = dynamic_cast<const TiedWeight*>(&layer);
  const std::string w =
      graph.parameter(tied != nullptr ? *tied->tied_weight() : *own_parameter(layer, "weight"));
  const ParameterPtr bias = own_parameter(layer, "bias");
  if (example.rank() == 1) {
    OnnxGraph::Names inputs{x, w};
    if (bias != nullptr) inputs.push_back(graph.parameter(*bias));
    return graph.add("Gemm", inputs, {{"transB", int64_t{1}}});
  }
  const std::string y = graph.add("MatMul", {x, graph.transpose(w, {1, 0})});
  return bias == nullptr ? y : graph.add("Add", {y, graph.parameter(*bias)});
}

// Also for a tied layer.
UnitAxis units_of_linear(UnitGraph& graph, const Module& layer, const UnitAxis& input,
                         const Shape& example) {
  const auto* tied = dynamic_cast<const TiedWeight*>(&layer);
  const ParameterPtr weight =
      tied != nullptr ? tied->tied_weight() : own_parameter(layer, "weight");
  const int dim = example.rank() - 1;
  const UnitGraph::Units in = graph.along(layer, input, example, dim);
  const int64_t size = weight->shape()[0];
  const UnitGraph::Units out =
      tied == nullptr
          ? graph.make(layer, size)
          : graph.make_fixed(size, unit_reason(layer, "gives an output for each row of '" +
                                                          weight->name() + "'"));
  graph.takes(weight, 1, in);
  graph.gives(weight, 0, out);
  graph.gives(own_parameter(layer, "bias"), 0, out);
  graph.counts(layer, "in_features", in);
  graph.sets(layer, "out_features", out);
  return {dim, out};
}

}  // namespace

void register_linear(LayerRegistry& registry) {
  registry.add("linear",
               "y = x Wᵀ + b: out_features, in_features, bias, init, init_fan_in, tied_to",
               {.make = make_linear,
                .has_fan_in = true,
                .outputs_key = "out_features",
                .onnx = write_linear,
                .units = units_of_linear});
}

}  // namespace lacuna
