#include "latency/served_model.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>

#include "common/encoder_layers.h"
#include "common/operands.h"
#include "lacuna/framework/config/names.h"
#include "lacuna/framework/core/error.h"
#include "lacuna/framework/inference/fold_batch_norm.hpp"
#include "lacuna/framework/io/yaml.h"
#include "lacuna/framework/layouts/cost/cost_model.hpp"
#include "lacuna/framework/quantize/quantize_model.hpp"
#include "lacuna/framework/train/model_builder.hpp"
#include "lacuna/layers/convolutions/conv2d.h"
#include "lacuna/sparsity/configure.h"

namespace lacuna::bench {
namespace {

std::string mlp_layers(int64_t hidden) {
  std::string layers;
  for (int i = 1; i <= 3; ++i) {
    layers += fmt::format("- {{type: linear, name: fc{}, out_features: {}}}\n- relu\n", i, hidden);
  }
  return layers + "- {type: linear, name: classifier, out_features: 10}\n";
}

std::vector<std::string> chosen_weights(const ServedNetwork& network, const Module& model) {
  std::vector<std::string> names;
  for (const ParameterPtr& parameter : model.parameters()) {
    if (parameter->use != WeightUse::Linear && parameter->use != WeightUse::Convolution) continue;
    names.push_back(parameter->name());
  }
  if (network.keeps_first) names.erase(names.begin());
  if (network.keeps_last) names.pop_back();
  return names;
}

void choose_algorithms(Module& model, int64_t examples) {
  for (Module* module : model.modules()) {
    auto* convolution = dynamic_cast<Conv2d*>(module);
    if (convolution == nullptr) continue;
    ConvolutionShape shape = convolution->weight()->convolution.value();
    shape.batch = examples;
    convolution->set_algorithms(fastest_algorithms(shape));
  }
}

// So that the squares of a row sum up to 2 in the mean: the sum of as many inputs is as large as
// one of them, behind a ReLU too.
void keep_magnitudes(Module& model, const std::vector<std::string>& weights) {
  for (const ParameterPtr& parameter : model.parameters()) {
    if (std::ranges::find(weights, parameter->name()) == weights.end()) continue;
    Tensor weight = parameter->to_dense();
    double squares = 0.0;
    for (const float w : weight.storage()) squares += double{w} * double{w};
    const double by = std::sqrt(2.0 * static_cast<double>(weight.shape()[0]) / squares);
    for (float& w : weight.mutable_storage()) w *= static_cast<float>(by);
    parameter->assign(weight);
  }
}

}  // namespace

const std::vector<std::string>& served_names() {
  static const std::vector<std::string> names = {"mlp", "resnet20", "bert_block"};
  return names;
}

ServedNetwork find_served(const std::string& name, bool is_tiny) {
  if (name == "mlp") {
    const int64_t hidden = is_tiny ? 40 : 1024;
    return {.name = name,
            .title = fmt::format("MLP 784-{0}-{0}-{0}-10", hidden),
            .layers = mlp_layers(hidden),
            .example = Shape{784},
            .keeps_last = true};
  }
  if (name == "resnet20") {
    const int64_t size = is_tiny ? 8 : 32;
    return {.name = name,
            .title = fmt::format("ResNet-20, {0} × {0}", size),
            .layers = "{type: cifar_resnet, depth: 20, num_labels: 10}",
            .example = Shape{3, size, size},
            .keeps_first = true,
            .keeps_last = true,
            .tolerance = 0.1};
  }
  if (name == "bert_block") {
    const int64_t tokens = is_tiny ? 9 : 128, features = is_tiny ? 32 : 768;
    const int64_t heads = is_tiny ? 2 : 12;
    return {.name = name,
            .title = fmt::format("Encoder block of BERT, {} tokens, {} features, {} heads", tokens,
                                 features, heads),
            .layers = encoder_layers(features, 4 * features, heads),
            .example = Shape{tokens, features},
            .attention_heads = heads};
  }
  throw ConfigError("--model: there is no model '" + name + "'; " +
                    suggest_name(name, served_names()));
}

Tensor ServedNetwork::draw(int64_t examples, const std::string& what) const {
  std::vector<int64_t> sizes = {examples};
  for (const int64_t size : example.sizes()) sizes.push_back(size);
  return random_tensor(Shape(sizes), what);
}

ServedModel::ServedModel(const ServedNetwork& network, int64_t examples,
                         const ServedStorage& storage)
    : model_(build_model(model_layers(parse_yaml(network.layers, network.name)), network.example)) {
  choose_algorithms(*model_, examples);
  model_->initialize(0);
  const std::vector<std::string> weights = chosen_weights(network, *model_);
  if (storage.layout != "dense") {
    Config section = Config::map({{"algorithm", "static"},
                                  {"sparsity", storage.sparsity},
                                  {"layout", storage.layout},
                                  {"param_filter", Config::from_value(weights)}});
    if (storage.in_groups) {
      section.set("pattern", Config::map({{"type", "block"}, {"rows", 1}, {"cols", 4}}));
    }
    algorithm_ = configure(section, 0);
    algorithm_->compression().batch = examples * network.tokens();
    model_->apply(*algorithm_);
  }
  keep_magnitudes(*model_, weights);
  model_->eval();
  fold_batch_norm(*model_, network.example);
  if (storage.in_int8) quantize(network, weights);
}

void ServedModel::quantize(const ServedNetwork& network, const std::vector<std::string>& weights) {
  const QuantizeOptions options{.algorithm = QuantizeOptions::Algorithm::Nearest,
                                .observer = QuantizeOptions::Observer::MinMax,
                                .param_filter = weights};
  const Tensor drawn = network.draw(16, "calibration");
  const CalibrationRun run = [&](Module& model) {
    const NoGrad no_grad;
    model(Variable(drawn));
  };
  const QuantizedModel quantized =
      quantize_model(*model_, int8_candidates(*model_, options), options, run);
  run_in_int8(*model_, state_of(quantized.layers));
}

Tensor ServedModel::run(const Tensor& x) const {
  const NoGrad no_grad;
  return (*model_)(Variable(x)).value();
}

}  // namespace lacuna::bench
