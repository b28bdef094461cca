#include "lacuna/framework/train/model_builder.h"

#include <fmt/core.h>

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "lacuna/framework/core/error.h"
#include "lacuna/framework/core/names.h"
#include "lacuna/framework/nn/layer_registry.h"
#include "lacuna/layers/linear.h"
#include "lacuna/layers/parallel.h"
#include "lacuna/layers/residual.h"

namespace lacuna {
namespace {

using Kind = ModelLayer::Kind;

// The input of the next layer: its shape, and who made it, for messages.
struct Feed {
  Shape shape;
  std::string source = "the data";
};

class Builder {
 public:
  explicit Builder(const Config& define) {
    types_ = layer_registry().names();
    types_.insert(types_.end(), {"sequential", "residual", "parallel"});
    for (const auto& [name, definition] : define.entries()) types_.push_back(name);
  }

  // Appends the layers to a group that is a chain; `feed` goes in and what comes out, comes out.
  template <class Group>
  void add_chain(Group& group, const std::vector<ModelLayer>& layers, Feed& feed) const {
    for (const ModelLayer& layer : layers) add(group, layer, build(layer, feed));
  }

 private:
  template <class Group>
  static void add(Group& group, const ModelLayer& layer, std::unique_ptr<Module> module) {
    try {
      group.add(layer.name, std::move(module));
    } catch (const StateError& error) {
      layer.node.error(error.what());
    }
  }

  std::unique_ptr<Module> build(const ModelLayer& layer, Feed& feed) const {
    std::unique_ptr<Module> module = build_kind(layer, feed);
    const Config& keys = layer.options;
    const bool trains = !keys.is_map() || keys.optional<bool>("trainable").value_or(true);
    if (!trains) module->set_trainable(false);
    return module;
  }

  std::unique_ptr<Module> build_kind(const ModelLayer& layer, Feed& feed) const {
    switch (layer.kind) {
      case Kind::Plain:
        return build_plain(layer, feed);
      case Kind::Sequential:
        return build_sequential(layer, feed);
      case Kind::Residual:
        return build_residual(layer, feed);
      case Kind::Parallel:
        return build_parallel(layer, feed);
    }
    return nullptr;
  }

  // Or a template: its layers stand elsewhere, so an error says whose they are.
  std::unique_ptr<Module> build_sequential(const ModelLayer& layer, Feed& feed) const {
    const bool is_template = layer.type != "sequential";
    auto sequential = std::make_unique<Sequential>(
        Sequential::Options{is_template ? "template: " + layer.type : ""});
    try {
      add_chain(*sequential, layer.layers, feed);
    } catch (const ConfigError& error) {
      if (!is_template) throw;
      throw ConfigError(fmt::format("{}; within {}", error.what(), layer.described()));
    }
    return sequential;
  }

  void require_known(const ModelLayer& layer) const {
    if (layer_registry().contains(layer.type)) return;
    (layer.node.is_map() ? layer.node.at("type") : layer.node)
        .error("unknown layer '" + layer.type + "'; " + suggest_name(layer.type, types_));
  }

  std::unique_ptr<Module> build_plain(const ModelLayer& layer, Feed& feed) const {
    require_known(layer);
    try {
      auto module = layer_registry().find(layer.type, layer.node).make(layer.options, feed.shape);
      feed = {module->output_shape(feed.shape), layer.described()};
      return module;
    } catch (const ShapeError& error) {
      layer.node.error(
          fmt::format("layer '{}' ({}) does not fit {}, which gives shape {} per example: {}",
                      layer.path, layer.type, feed.source, feed.shape.to_string(), error.what()));
    }
  }

  std::unique_ptr<Module> build_residual(const ModelLayer& layer, Feed& feed) const {
    auto residual = std::make_unique<Residual>();
    Feed body = feed, shortcut = feed;
    add_chain(*residual, layer.layers, body);
    const bool is_used = layer.always_shortcut || body.shape != feed.shape;
    for (const ModelLayer& part : layer.shortcut) {
      if (is_used) {
        infer_subsampling(part, shortcut.shape, body.shape);
        add_shortcut(*residual, part, build(part, shortcut));
      } else {
        pass_over(part);
      }
    }
    if (body.shape != shortcut.shape) {
      const bool is_identity = layer.shortcut.empty();
      layer.node.error(fmt::format(
          "layer '{}' ({}) adds shapes that differ: {} per example, which its layers give ({}), "
          "and {}, which its {} ({}){}",
          layer.path, layer.type, body.shape.to_string(), body.source, shortcut.shape.to_string(),
          is_identity ? "input has" : "shortcut gives", shortcut.source,
          is_identity ? "; make them equal, or give it a `shortcut`" : ""));
    }
    feed = {body.shape, layer.described()};
    return residual;
  }

  // A shortcut without weights takes its sizes from the layers beside it.
  static void infer_subsampling(const ModelLayer& part, const Shape& input, const Shape& output) {
    if (part.type != "subsample_pad" || input.rank() != 3 || output.rank() != 3) return;
    Config options = part.options;
    if (!options.has("channels")) options.set("channels", output[0]);
    if (options.has("stride") || output[1] < 1 || output[2] < 1) return;
    options.set("stride", Config::list({Config((input[1] + output[1] - 1) / output[1]),
                                        Config((input[2] + output[2] - 1) / output[2])}));
  }

  static void add_shortcut(Residual& residual, const ModelLayer& part,
                           std::unique_ptr<Module> module) {
    try {
      residual.add_shortcut(part.name, std::move(module));
    } catch (const StateError& error) {
      part.node.error(error.what());
    }
  }

  // A shortcut that is not used here is not built: its keys count as understood.
  void pass_over(const ModelLayer& layer) const {
    if (layer.kind == Kind::Plain) require_known(layer);
    for (const ModelLayer& part : layer.layers) pass_over(part);
    for (const ModelLayer& part : layer.shortcut) pass_over(part);
    layer.node.mark_read();
  }

  std::unique_ptr<Module> build_parallel(const ModelLayer& layer, Feed& feed) const {
    auto parallel = std::make_unique<Parallel>();
    Feed joined;
    for (const ModelLayer& branch : layer.layers) {
      Feed output = feed;
      add(*parallel, branch, build(branch, output));
      if (&branch == &layer.layers.front()) {
        joined = output;
        continue;
      }
      const std::optional<Shape> both = Parallel::side_by_side(joined.shape, output.shape);
      if (!both) {
        layer.node.error(fmt::format(
            "layer '{}' ({}) puts side by side what does not fit: shape {} per example, up to {}, "
            "and {}, of {}; only the {} may differ",
            layer.path, layer.type, joined.shape.to_string(), joined.source,
            output.shape.to_string(), output.source,
            output.shape.rank() == 3 ? "channels, the first dimension," : "last dimension"));
      }
      joined = {*both, output.source};
    }
    feed = {joined.shape, layer.described()};
    return parallel;
  }

  std::vector<std::string> types_;  // all that a layer can be
};

// Gives the layers that are tied to another's parameter their weights.
void tie_weights(Module& model) {
  for (Module* module : model.modules()) {
    auto* layer = dynamic_cast<Linear*>(module);
    if (layer == nullptr || layer->tied_to().empty()) continue;
    try {
      layer->tie(model.parameter(layer->tied_to()));
    } catch (const Error& error) {
      throw ConfigError("layer '" + layer->path() + "' (linear), tied_to: " + error.what());
    }
  }
}

}  // namespace

ModelLayers model_layers(const Config& model) {
  ModelLayers layers = expand_model(model);
  for (const auto& [name, definition] : layers.define.entries()) {
    if (layer_registry().contains(name)) {
      definition.error("there is already a layer named '" + name + "'");
    }
  }
  return layers;
}

std::unique_ptr<Sequential> build_model(const ModelLayers& layers, const Shape& example_shape) {
  Feed feed{.shape = example_shape};
  auto model = std::make_unique<Sequential>();
  Builder(layers.define).add_chain(*model, layers.layers, feed);
  tie_weights(*model);
  for (const Config& copy : layers.copies) copy.require_all_read();
  return model;
}

}  // namespace lacuna
