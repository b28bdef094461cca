#include "lacuna/layers/activations.h"

#include <fmt/core.h>

#include <cmath>
#include <memory>
#include <string>

#include "lacuna/framework/autograd/ops/activation.h"
#include "lacuna/framework/core/error.h"
#include "lacuna/framework/nn/layer_options.hpp"

namespace lacuna {

ReLU::ReLU(const Options&) : PlainActivation("relu", relu) {}
SquaredReLU::SquaredReLU(const Options&) : PlainActivation("squared_relu", squared_relu) {}
SiLU::SiLU(const Options&) : PlainActivation("silu", silu) {}
Sigmoid::Sigmoid(const Options&) : PlainActivation("sigmoid", sigmoid) {}
Tanh::Tanh(const Options&) : PlainActivation("tanh", tanh) {}
SwiGLU::SwiGLU(const Options&) : PlainActivation("swiglu", swiglu) {}

Shape SwiGLU::output_shape(const Shape& input) const {
  if (input.rank() < 1 || input.features() % 2 != 0) {
    throw ShapeError(
        fmt::format("layer '{}' (swiglu): needs examples of shape [..., 2 features], found {}",
                    path(), input.to_string()));
  }
  return input.with_features(input.features() / 2);
}

LeakyReLU::LeakyReLU(const Options& options) : options_(options) {
  if (!(options.negative_slope >= 0.0f && std::isfinite(options.negative_slope))) {
    throw ConfigError(
        fmt::format("leaky_relu: negative_slope must be a finite number of at least 0, found {}",
                    options.negative_slope));
  }
}

Variable LeakyReLU::forward(const Variable& input) {
  return leaky_relu(input, options_.negative_slope);
}

Variable GELU::forward(const Variable& input) {
  return options_.approximate == Approximate::Tanh ? gelu_tanh(input) : gelu(input);
}

namespace {

LayerPtr make_leaky_relu(const Config& options, const Shape&) {
  const auto slope = options.get<float>("negative_slope", 0.01f);
  if (!(slope >= 0.0f && std::isfinite(slope))) {
    options.at("negative_slope").fail("a finite number of at least 0");
  }
  return std::make_unique<LeakyReLU>(LeakyReLU::Options{.negative_slope = slope});
}

LayerPtr make_gelu(const Config& options, const Shape&) {
  const auto approximate = options.get<std::string>("approximate", "none");
  if (approximate != "none" && approximate != "tanh") {
    options.at("approximate").fail("none or tanh");
  }
  return std::make_unique<GELU>(
      GELU::Options{approximate == "tanh" ? GELU::Approximate::Tanh : GELU::Approximate::None});
}

std::string write_gelu(OnnxGraph& graph, const GELU& layer, const std::string& x, const Shape&) {
  const std::string half = graph.scalar(0.5f), one = graph.scalar(1.0f);
  std::string inner;
  if (layer.options().approximate == GELU::Approximate::None) {
    inner = graph.add("Erf", {graph.add("Mul", {x, graph.scalar(std::sqrt(0.5f))})});
  } else {
    const std::string square = graph.add("Mul", {x, x});
    const std::string factor =
        graph.add("Add", {graph.add("Mul", {square, graph.scalar(0.044715f)}), one});
    const std::string angle = graph.add(
        "Mul", {graph.add("Mul", {x, factor}), graph.scalar(std::sqrt(2.0f / 3.14159265f))});
    inner = graph.add("Tanh", {angle});
  }
  const std::string weight = graph.add("Mul", {graph.add("Add", {inner, one}), half});
  return graph.add("Mul", {x, weight});
}

std::string write_silu(OnnxGraph& graph, const SiLU&, const std::string& x, const Shape&) {
  return graph.add("Mul", {x, graph.add("Sigmoid", {x})});
}

std::string write_swiglu(OnnxGraph& graph, const SwiGLU&, const std::string& x,
                         const Shape& example) {
  const int64_t features = example.features() / 2;
  const OnnxGraph::Names halves = graph.split(x, {features, features}, -1);
  const std::string gate = graph.add("Mul", {halves[0], graph.add("Sigmoid", {halves[0]})});
  return graph.add("Mul", {gate, halves[1]});
}

std::string write_squared_relu(OnnxGraph& graph, const SquaredReLU&, const std::string& x,
                               const Shape&) {
  const std::string y = graph.add("Relu", {x});
  return graph.add("Mul", {y, y});
}

std::string write_leaky_relu(OnnxGraph& graph, const LeakyReLU& layer, const std::string& x,
                             const Shape&) {
  return graph.add("LeakyRelu", {x}, {{"alpha", layer.options().negative_slope}});
}

UnitAxis units_of_swiglu(UnitGraph& graph, const SwiGLU& layer, const UnitAxis& input,
                         const Shape& example) {
  const int dim = example.rank() - 1;
  const UnitGraph::Units both = graph.along(layer, input, example, dim);
  const auto half = both.begin() + static_cast<std::ptrdiff_t>(both.size() / 2);
  const UnitGraph::Units gate(both.begin(), half), up(half, both.end());
  graph.unite(gate, up);
  return {dim, gate};
}

}  // namespace

void register_activations(LayerRegistry& registry) {
  registry.add("relu", "max(x, 0)",
               {.make = make_plain<ReLU>, .onnx = onnx_operator("Relu"), .units = units_kept()});
  registry.add(
      "leaky_relu", "x where x ≥ 0, else negative_slope (0.01) x",
      {.make = make_leaky_relu, .onnx = onnx_form(write_leaky_relu), .units = units_kept()});
  registry.add("squared_relu", "max(x, 0)²",
               {.make = make_plain<SquaredReLU>,
                .onnx = onnx_form(write_squared_relu),
                .units = units_kept()});
  registry.add("gelu", "x Φ(x): approximate (none, tanh)",
               {.make = make_gelu, .onnx = onnx_form(write_gelu), .units = units_kept()});
  registry.add("silu", "x σ(x)",
               {.make = make_plain<SiLU>, .onnx = onnx_form(write_silu), .units = units_kept()});
  registry.add(
      "sigmoid", "1 / (1 + e⁻ˣ)",
      {.make = make_plain<Sigmoid>, .onnx = onnx_operator("Sigmoid"), .units = units_kept()});
  registry.add("tanh", "tanh x",
               {.make = make_plain<Tanh>, .onnx = onnx_operator("Tanh"), .units = units_kept()});
  registry.add("swiglu", "silu(gate) · up of [gate | up]",
               {.make = make_plain<SwiGLU>,
                .onnx = onnx_form(write_swiglu),
                .units = unit_form(units_of_swiglu)});
}

}  // namespace lacuna
