#include "lacuna/framework/train/parts/parameter_roles.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <string>

#include "lacuna/framework/nn/affine_layer.h"
#include "lacuna/framework/nn/batch_user.h"
#include "lacuna/framework/nn/module_rows.h"
#include "lacuna/framework/nn/tied_weight.h"
#include "lacuna/framework/nn/tiled_output.h"
#include "lacuna/layers/tokens/attention.h"

namespace lacuna {
namespace {

using Kind = ModelLayer::Kind;
using Modules = std::map<std::string, Module*>;  // by full path

Module* module_of(const ModelLayer& layer, const Modules& modules) {
  const auto found = modules.find(layer.path);
  return found == modules.end() ? nullptr : found->second;  // of a shortcut that is not used
}

bool is_norm(const Module& module) {
  const auto& own = module.own_parameters();
  const auto is_vector = [](const auto& entry) {
    return entry.second->shape().rank() == 1 && entry.second->use == WeightUse::Other;
  };
  return std::ranges::any_of(own, [](const auto& entry) { return entry.first == "weight"; }) &&
         std::ranges::all_of(own, is_vector);
}

// The layers that give a model's outputs, found from its end.
class Outputs {
 public:
  Outputs(const ModelLayers& layers, const Modules& modules) : modules_(modules) {
    if (search(layers.layers) != Search::Done && !tied_.empty()) without_norm_ = tied_;
  }

  bool contains(const Module* module) const { return heads_.contains(module); }
  bool is_last_norm(const Module* module) const { return module == norm_; }
  const std::string& head_without_norm() const { return without_norm_; }

 private:
  enum class Search { Goes, Done, Failed };

  Search search(const std::vector<ModelLayer>& layers) {
    for (auto layer = layers.rbegin(); layer != layers.rend(); ++layer) {
      const Search found = search(*layer);
      if (found != Search::Goes) return found;
    }
    return Search::Goes;
  }

  Search search(const ModelLayer& layer) {
    if (layer.kind == Kind::Sequential) return search(layer.layers);
    if (layer.kind != Kind::Plain) {
      if (!tied_.empty()) return Search::Failed;  // a norm in one of several branches
      if (layer.kind == Kind::Residual) {
        search(layer.layers);
        search(layer.shortcut);
      } else {
        for (const ModelLayer& branch : layer.layers) search(branch);
      }
      return heads_.empty() ? Search::Goes : Search::Done;
    }
    const Module* module = module_of(layer, modules_);
    if (module == nullptr) return Search::Goes;
    if (!tied_.empty()) {
      if (is_norm(*module)) {
        norm_ = module;
        return Search::Done;
      }
      return module->own_parameters().empty() ? Search::Goes : Search::Failed;
    }
    if (dynamic_cast<const AffineLayer*>(module) != nullptr) {
      heads_.insert(module);
      return Search::Done;
    }
    if (dynamic_cast<const TiedWeight*>(module) != nullptr) {
      heads_.insert(module);
      tied_ = layer.described();
    }
    return Search::Goes;
  }

  const Modules& modules_;
  std::set<const Module*> heads_;
  const Module* norm_ = nullptr;
  std::string tied_;  // the head, where it is tied to another layer's weight
  std::string without_norm_;
};

// The output of a layer: features of the data, or a number of inner ones.
struct FeatureFlow {
  bool is_data = true;
  double width = 0.0;
  bool is_channels = false;  // the first dimension of an example; else its features, the last one

  double width_of(const Shape& example) const {
    return static_cast<double>(is_channels && example.rank() > 1 ? example[0] : example.features());
  }
};

// The deviation that a layer would draw with so much fewer inputs and outputs, over the one it
// draws: initializations divide by the root of their number.
double drawn_ratio(const AffineLayer& layer, double in, double out) {
  const AffineLayer::Draw& draw = layer.draw();
  const Fans fans = fans_of(layer.weight()->shape());
  const bool is_number = draw.init_fan_in.is_number();
  const auto inputs = static_cast<double>(draw.init_fan_in.inputs(fans.in)),
             outputs = static_cast<double>(fans.out);
  const double base_inputs = is_number ? inputs : inputs / in;
  switch (draw.init.type) {
    case WeightInit::XavierUniform:
    case WeightInit::XavierNormal:
      return std::sqrt((inputs + outputs) / (base_inputs + outputs / out));
    case WeightInit::Default:
    case WeightInit::KaimingUniform:
    case WeightInit::KaimingNormal:
      return std::sqrt(inputs / base_inputs);
    default:
      return 1.0;
  }
}

class SizeWalk {
 public:
  SizeWalk(const ModelLayers& layers, Module& model, const Shape& example, double base_width,
           std::optional<double> width)
      : modules_(by_path(model)),
        rows_(module_rows(model, example)),
        outputs_(layers, modules_),
        base_width_(base_width),
        width_(width) {
    FeatureFlow flow;
    chain(layers.layers, flow);
    sized_.head_without_norm = outputs_.head_without_norm();
  }

  SizedModel take() { return std::move(sized_); }

 private:
  static Modules by_path(Module& model) {
    Modules modules;
    for (Module* module : model.modules()) modules.emplace(module->path(), module);
    return modules;
  }

  double ratio(const FeatureFlow& flow) const {
    return flow.is_data ? 1.0 : width_.value_or(flow.width) / base_width_;
  }

  const ModuleRow* row_of(const Module* module) const {
    const auto row = std::ranges::find(rows_, module, &ModuleRow::module);
    return row == rows_.end() ? nullptr : &*row;
  }

  void chain(const std::vector<ModelLayer>& layers, FeatureFlow& flow) {
    for (size_t i = 0; i < layers.size(); ++i) {
      const Module* next = i + 1 < layers.size() ? module_of(layers[i + 1], modules_) : nullptr;
      is_normalized_ = dynamic_cast<const BatchUser*>(next) != nullptr;
      visit(layers[i], flow);
    }
  }

  void visit(const ModelLayer& layer, FeatureFlow& flow) {
    if (layer.kind == Kind::Plain) return visit_plain(layer, flow);
    if (layer.kind == Kind::Sequential) return chain(layer.layers, flow);
    const FeatureFlow input = flow;
    if (layer.kind == Kind::Residual) {
      FeatureFlow shortcut = input;
      chain(layer.layers, flow);
      chain(layer.shortcut, shortcut);
      flow.is_data = flow.is_data && shortcut.is_data;
      return;
    }
    flow = {.is_data = true, .width = 0.0};
    for (const ModelLayer& branch : layer.layers) {
      FeatureFlow output = input;
      visit(branch, output);
      flow.is_data = flow.is_data && output.is_data;
      flow.width += output.width;
      flow.is_channels = flow.is_channels || output.is_channels;
    }
  }

  void visit_plain(const ModelLayer& layer, FeatureFlow& flow) {
    Module* module = module_of(layer, modules_);
    if (module == nullptr) return;
    if (const auto* affine = dynamic_cast<const AffineLayer*>(module)) return add(*affine, flow);
    if (const auto* attention = dynamic_cast<const Attention*>(module))
      add(layer, *attention, flow);
    if (dynamic_cast<const TiledOutput*>(module) != nullptr) {
      layer.node.error(
          fmt::format("layer '{}' ({}) has weights for which the parametrization has no rules",
                      layer.path, layer.type));
    }
    if (module->own_parameters().empty() && dynamic_cast<TiedWeight*>(module) == nullptr) {
      return pass_on(module, flow);
    }
    add_others(layer, *module, flow);
  }

  void add(const AffineLayer& layer, FeatureFlow& flow) {
    const Shape& shape = layer.weight()->shape();
    const bool is_output = outputs_.contains(&layer), reads_data = flow.is_data;
    // A channel of a depthwise convolution reads one channel, however many there are.
    const bool is_depthwise = shape.rank() > 2 && shape[1] == 1 && flow.width > 1.0;
    const double in = is_depthwise ? 1.0 : ratio(flow);
    const ModuleRow* row = row_of(&layer);
    const bool keeps_rank =
        row != nullptr && row->input && row->output && row->input->rank() == row->output->rank();
    flow = {.is_data = false,
            .width = static_cast<double>(shape[0]),
            .is_channels = shape.rank() > 2 && keeps_rank};
    const double out = is_output ? 1.0 : ratio(flow);
    sized_.parameters.push_back({.parameter = layer.weight(),
                                 .role = is_output    ? ParameterRole::Output
                                         : reads_data ? ParameterRole::Input
                                                      : ParameterRole::Hidden,
                                 .in = in,
                                 .out = out,
                                 .drawn = drawn_ratio(layer, in, out),
                                 .is_normalized = is_normalized_,
                                 .counts_nonzeros = layer.draw().init_fan_in.counts_nonzeros()});
    if (layer.bias() == nullptr) return;
    const bool is_fixed = layer.draw().init.zero_bias() || layer.draw().init_fan_in.is_number();
    sized_.parameters.push_back({.parameter = layer.bias(),
                                 .role = ParameterRole::Vector,
                                 .in = 1.0,
                                 .out = out,
                                 .drawn = is_fixed ? 1.0 : std::sqrt(in)});
  }

  void add(const ModelLayer& layer, const Attention& attention, const FeatureFlow& flow) {
    const ModuleRow* row = row_of(&attention);
    if (layer.options.has("scale") || row == nullptr || !row->output) return;
    const auto features = static_cast<double>(row->output->features());
    const double of_head = features / static_cast<double>(attention.options().heads);
    const double wide = flow.is_data ? 1.0 : width_.value_or(features) / base_width_;
    sized_.attention.push_back(
        {.ratio = wide, .scale = 1.0 / std::sqrt(of_head * wide), .node = layer.node});
  }

  // Embeddings, norms, biases of tied layers.
  void add_others(const ModelLayer& layer, const Module& module, FeatureFlow& flow) {
    const ModuleRow* row = row_of(&module);
    const bool is_tied = dynamic_cast<const TiedWeight*>(&module) != nullptr;
    const bool is_embedding = std::ranges::any_of(module.own_parameters(), [](const auto& entry) {
      return entry.second->use == WeightUse::Embedding;
    });
    if (!is_tied && !is_embedding && row != nullptr && row->weight != nullptr) {
      layer.node.error(fmt::format(
          "layer '{}' ({}) multiplies by a weight for which the parametrization has no rules",
          layer.path, layer.type));
    }
    if ((is_embedding || is_tied) && row != nullptr && row->output) {
      flow = {.is_data = false, .width = static_cast<double>(row->output->features())};
    }
    const double out = outputs_.contains(&module) ? 1.0 : ratio(flow);
    const bool is_last = outputs_.is_last_norm(&module);
    for (const auto& [name, parameter] : module.own_parameters()) {
      const bool is_table = parameter->use == WeightUse::Embedding || parameter->shape().rank() > 1;
      sized_.parameters.push_back({.parameter = parameter,
                                   .role = is_last    ? ParameterRole::LastNorm
                                           : is_table ? ParameterRole::Table
                                                      : ParameterRole::Vector,
                                   .in = is_last ? out : 1.0,
                                   .out = out});
    }
  }

  // Attention and gates give fewer features than they are given, and padding more channels. What
  // flattens keeps the channels as its width.
  void pass_on(const Module* module, FeatureFlow& flow) const {
    const ModuleRow* row = row_of(module);
    if (row == nullptr || !row->input || !row->output || row->input->rank() < 1) return;
    const bool keeps_rank = row->output->rank() == row->input->rank();
    if (keeps_rank && flow.width_of(*row->input) == flow.width) {
      flow.width = flow.width_of(*row->output);
    }
    flow.is_channels = flow.is_channels && row->output->rank() > 1;
  }

  Modules modules_;
  std::vector<ModuleRow> rows_;
  Outputs outputs_;
  double base_width_;
  std::optional<double> width_;
  SizedModel sized_;
  bool is_normalized_ = false;  // what is visited now
};

}  // namespace

std::string_view role_in_words(ParameterRole role) {
  switch (role) {
    case ParameterRole::Input:
      return "input";
    case ParameterRole::Hidden:
      return "hidden";
    case ParameterRole::Output:
      return "output";
    case ParameterRole::Vector:
      return "vector";
    case ParameterRole::Table:
      return "embedding";
    case ParameterRole::LastNorm:
      return "last norm";
  }
  return "";
}

SizedModel size_parameters(const ModelLayers& layers, Module& model, const Shape& example,
                           double base_width, std::optional<double> width) {
  return SizeWalk(layers, model, example, base_width, width).take();
}

}  // namespace lacuna
