// Layers that take features, and those that take any shape.
#include <cmath>

#include "lacuna/framework/onnx/layer_forms.hpp"
#include "lacuna/layers/activations.h"
#include "lacuna/layers/batch_norm.h"
#include "lacuna/layers/dropout.h"
#include "lacuna/layers/flatten.h"
#include "lacuna/layers/linear.h"
#include "lacuna/layers/norms.h"
#include "lacuna/layers/semi_sparse_activation.h"
#include "lacuna/layers/tied_linear.h"

namespace lacuna {
namespace {

std::string write_product(OnnxGraph& graph, const Parameter& weight, const Parameter* bias,
                          const std::string& x, const Shape& example) {
  const std::string w = graph.parameter(weight);
  if (example.rank() == 1) {
    OnnxGraph::Names inputs{x, w};
    if (bias != nullptr) inputs.push_back(graph.parameter(*bias));
    return graph.add("Gemm", inputs, {{"transB", int64_t{1}}});
  }
  const std::string y = graph.add("MatMul", {x, graph.transpose(w, {1, 0})});
  return bias == nullptr ? y : graph.add("Add", {y, graph.parameter(*bias)});
}

std::string write_linear(OnnxGraph& graph, const Linear& layer, const std::string& x,
                         const Shape& example) {
  return write_product(graph, *layer.weight(), layer.bias().get(), x, example);
}

std::string write_tied_linear(OnnxGraph& graph, const TiedLinear& layer, const std::string& x,
                              const Shape& example) {
  return write_product(graph, *layer.tied_weight(), layer.bias().get(), x, example);
}

std::string write_batch_norm(OnnxGraph& graph, const BatchNorm& layer, const std::string& x,
                             const Shape&) {
  if (layer.is_folded()) return x;
  if (!layer.options().track_running_stats) {
    refuse_layer(layer,
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

// Each group as a channel of an instance normalization.
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

// Of each m features the n largest |x|, of equal ones the first, as TopK chooses them.
std::string write_kept_features(OnnxGraph& graph, const SemiSparseActivation& layer,
                                const std::string& x) {
  const OnnxGraph::Attributes last{{"axis", int64_t{-1}}};
  const std::string cells = graph.reshape(x, {-1, layer.options().m});
  const OnnxGraph::Names top = graph.add_with_outputs(
      "TopK", {graph.add("Abs", {cells}), graph.integers({layer.options().n})}, 2, last);
  const std::string kept = graph.add("GatherElements", {cells, top[1]}, last);
  const std::string zeros = graph.add("ConstantOfShape", {graph.add("Shape", {cells})});
  const std::string y = graph.add("ScatterElements", {zeros, top[1], kept}, last);
  return graph.add("Reshape", {y, graph.add("Shape", {x})});
}

// The features of images are their channels.
std::string write_semi_sparse(OnnxGraph& graph, const SemiSparseActivation& layer,
                              const std::string& x, const Shape& example) {
  if (example.rank() != 3) return write_kept_features(graph, layer, x);
  const std::string kept = write_kept_features(graph, layer, graph.transpose(x, {0, 2, 3, 1}));
  return graph.transpose(kept, {0, 3, 1, 2});
}

template <class Layer>
void add_operator(LayerForms& forms, const char* type) {
  add_form<Layer>(forms, [type](OnnxGraph& graph, const Layer&, const std::string& x,
                                const Shape&) { return graph.add(type, {x}); });
}

template <class Layer>
void add_identity(LayerForms& forms) {
  add_form<Layer>(forms,
                  [](OnnxGraph&, const Layer&, const std::string& x, const Shape&) { return x; });
}

}  // namespace

void add_plain_forms(LayerForms& forms) {
  add_identity<Dropout>(forms);  // in evaluation mode
  add_operator<Flatten>(forms, "Flatten");
  add_operator<ReLU>(forms, "Relu");
  add_operator<Sigmoid>(forms, "Sigmoid");
  add_operator<Tanh>(forms, "Tanh");
  add_form<BatchNorm>(forms, write_batch_norm);
  add_form<GELU>(forms, write_gelu);
  add_form<GroupNorm>(forms, write_group_norm);
  add_form<LayerNorm>(forms, write_layer_norm);
  add_form<LeakyReLU>(forms, write_leaky_relu);
  add_form<Linear>(forms, write_linear);
  add_form<RmsNorm>(forms, write_rms_norm);
  add_form<SemiSparseActivation>(forms, write_semi_sparse);
  add_form<SiLU>(forms, write_silu);
  add_form<SquaredReLU>(forms, write_squared_relu);
  add_form<SwiGLU>(forms, write_swiglu);
  add_form<TiedLinear>(forms, write_tied_linear);
}

}  // namespace lacuna
