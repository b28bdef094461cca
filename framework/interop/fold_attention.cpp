#include "lacuna/framework/interop/fold_attention.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "lacuna/framework/core/error.h"
#include "lacuna/framework/nn/affine_layer.h"
#include "lacuna/framework/nn/module_rows.h"
#include "lacuna/framework/nn/shared_parameters.hpp"
#include "lacuna/framework/train/model_builder.hpp"
#include "lacuna/layers/tokens/attention.h"

namespace lacuna {
namespace {

// Rows of queries that are left in linear layers side by side.
struct QueryRows {
  int64_t left = 0;
  double factor = 1.0;

  void fold_into(Parameter& parameter, int64_t rows) const {
    Tensor dense = parameter.to_dense();
    const int64_t row = parameter.numel() / parameter.shape()[0];
    std::span<float> values = dense.mutable_storage();
    for (int64_t i = 0; i < rows * row; ++i) {
      float& value = values[static_cast<size_t>(i)];
      value = static_cast<float>(static_cast<double>(value) * factor);
    }
    parameter.assign(dense);
  }

  // Not where the weight or the bias is another layer's, too.
  bool fold_into(const AffineLayer& layer, const std::set<const Parameter*>& shared) {
    if (shared.contains(layer.weight().get()) || shared.contains(layer.bias().get())) return false;
    const int64_t rows = std::min(left, layer.weight()->shape()[0]);
    fold_into(*layer.weight(), rows);
    if (layer.bias() != nullptr) fold_into(*layer.bias(), rows);
    left -= rows;
    return true;
  }
};

class AttentionFold {
 public:
  AttentionFold(const LoadedRun& run, double scale)
      : scale_(scale), shared_(shared_parameters(*run.model)) {
    for (Module* module : run.model->modules()) modules_.emplace(module->path(), module);
    for (const ModuleRow& row : module_rows(*run.model, run.inputs.example_shape)) {
      if (row.output) features_[row.module] = row.output->features();
    }
  }

  void visit(const std::vector<ModelLayer>& layers) {
    const ModelLayer* before = nullptr;  // what gives queries, keys and values
    for (const ModelLayer& layer : layers) {
      if (layer.type == "attention") fold(layer, before);
      visit(layer.layers);
      visit(layer.shortcut);
      if (layer.type != "rotary") before = &layer;  // which turns what was multiplied
    }
  }

 private:
  template <class Layer>
  const Layer* find(const ModelLayer& layer) const {
    const auto found = modules_.find(layer.path);
    return found == modules_.end() ? nullptr : dynamic_cast<const Layer*>(found->second);
  }

  void fold(const ModelLayer& layer, const ModelLayer* before) const {
    const auto* attention = find<Attention>(layer);
    if (attention == nullptr || attention->options().scale != scale_) return;
    const int64_t features = features_.at(attention);
    const auto of_head = static_cast<double>(features / attention->options().heads);
    QueryRows rows{.left = features, .factor = scale_ * std::sqrt(of_head)};
    if (before != nullptr && before->kind == ModelLayer::Kind::Plain) {
      if (const auto* linear = find<AffineLayer>(*before)) rows.fold_into(*linear, shared_);
    } else if (before != nullptr && before->kind == ModelLayer::Kind::Parallel) {
      for (const ModelLayer& branch : before->layers) {
        const auto* linear = find<AffineLayer>(branch);
        if (linear == nullptr) break;
        if (rows.left > 0 && !rows.fold_into(*linear, shared_)) break;
      }
    }
    if (rows.left == 0) return;
    throw ConfigError(
        fmt::format("the scale {} of {} cannot be put into weights, because no linear layer with "
                    "weights of its own comes before it; export to onnx",
                    scale_, layer.described()));
  }

  double scale_;
  std::set<const Parameter*> shared_;
  std::map<std::string, Module*> modules_;
  std::map<const Module*, int64_t> features_;
};

}  // namespace

void fold_attention_scale(const LoadedRun& run) {
  const Config section = run.config.at("model").clone();
  if (!section.is_map() || section.peek("attention_scale").is_null()) return;
  const ModelLayers layers = model_layers(section);
  AttentionFold(run, section.peek("attention_scale").as<double>()).visit(layers.layers);
}

}  // namespace lacuna
