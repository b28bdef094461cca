#include "lacuna/framework/train/model_builder.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <iterator>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "lacuna/framework/config/names.h"
#include "lacuna/framework/core/buffer.h"
#include "lacuna/framework/core/error.h"
#include "lacuna/framework/model/presets/presets.hpp"
#include "lacuna/framework/nn/layer_options.hpp"
#include "lacuna/framework/nn/layer_registry.h"
#include "lacuna/layers/convolutions/conv2d.h"
#include "lacuna/layers/parallel.h"
#include "lacuna/layers/residual.h"
#include "lacuna/layers/tied_linear.h"

namespace lacuna {
namespace {

using Kind = ModelLayer::Kind;

// The input of the next layer: its shape, and who made it, for messages.
struct Feed {
  Shape shape;
  std::string source = "the data";
};

// Shapes that do not fit each other.
class MisfitError : public ConfigError {
 public:
  using ConfigError::ConfigError;
};

[[noreturn]] void fail_misfit(const Config& node, const std::string& message) {
  throw MisfitError(node.where() + ": " + message);
}

// A layer whose keys can be read without marking them or writing defaults.
ModelLayer unmarked(const ModelLayer& layer) {
  ModelLayer copy = layer;
  copy.node = layer.node.clone();
  copy.options = layer.node.is_map() ? copy.node : layer.options.clone();
  for (const char* key : {"type", "name"}) copy.options.get(key);
  for (ModelLayer& part : copy.layers) part = unmarked(part);
  for (ModelLayer& part : copy.shortcut) part = unmarked(part);
  return copy;
}

class Builder {
 public:
  Builder(const Config& define, const LayerCheck& check) : check_(check) {
    types_ = layer_registry().names();
    types_.insert(types_.end(), {"sequential", "residual", "parallel", "qkv"});
    for (const auto& [name, definition] : define.entries()) types_.push_back(name);
  }

  // Appends the layers to a sequential group; `feed` becomes the shape of its output.
  template <class Group>
  void add_chain(Group& group, const std::vector<ModelLayer>& layers, Feed& feed) {
    const ModelLayer* before = nullptr;
    for (const ModelLayer& layer : layers) {
      if (before != nullptr) require_same_heads(*before, layer);
      auto module = build(layer, feed);
      naming_layer(layer, [&] { group.add(layer.name, std::move(module)); });
      before = &layer;
    }
  }

 private:
  // What turns queries and keys by their heads, and what attends by them.
  static void require_same_heads(const ModelLayer& rotary, const ModelLayer& attention) {
    if (rotary.type != "rotary" || attention.type != "attention") return;
    const auto heads_of = [](const ModelLayer& layer, const char* key) {
      const Config keys = layer.options.clone();  // looking at it leaves no marks
      return keys.optional<int64_t>(key).value_or(keys.required<int64_t>("heads"));
    };
    for (const char* key : {"heads", "kv_heads"}) {
      const int64_t turned = heads_of(rotary, key), attended = heads_of(attention, key);
      if (turned == attended) continue;
      attention.node.error(fmt::format(
          "layer '{}' (attention) has {} {}, and the rotary layer before it, '{}', turns {}; give "
          "both the same",
          attention.path, attended, key, rotary.path, turned));
    }
  }

  template <class Add>
  static void naming_layer(const ModelLayer& layer, const Add& add) {
    try {
      add();
    } catch (const StateError& error) {
      layer.node.error(error.what());
    }
  }

  std::unique_ptr<Module> build(const ModelLayer& layer, Feed& feed) {
    std::unique_ptr<Module> module;
    try {
      module = build_kind(layer, feed);
    } catch (const ShapeError& error) {
      fail_misfit(layer.node, "layer '" + layer.path + "' (" + layer.type + "): " + error.what());
    }
    const Config& keys = layer.options;
    const bool trains = !keys.is_map() || keys.optional<bool>("trainable").value_or(true);
    if (!trains) module->set_trainable(false);
    if (check_) check_(*module, layer);
    built_[layer.path] = module.get();
    return module;
  }

  std::unique_ptr<Module> build_kind(const ModelLayer& layer, Feed& feed) {
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

  // Or a template: its layers are written elsewhere, so an error names their owner.
  std::unique_ptr<Module> build_sequential(const ModelLayer& layer, Feed& feed) {
    const bool is_template = layer.type != "sequential";
    auto sequential = std::make_unique<Sequential>(
        Sequential::Options{is_template ? "template: " + layer.type : ""});
    try {
      add_chain(*sequential, layer.layers, feed);
    } catch (const MisfitError& error) {
      if (!is_template) throw;
      throw MisfitError(fmt::format("{}; within {}", error.what(), layer.described()));
    } catch (const ConfigError& error) {
      if (!is_template) throw;
      throw ConfigError(fmt::format("{}; within {}", error.what(), layer.described()));
    }
    return sequential;
  }

  void require_known(const ModelLayer& layer) const {
    if (layer_registry().contains(layer.type)) return;
    (layer.node.is_map() ? layer.node.at("type") : layer.node)
        .error(unknown_layer(layer.type, types_));
  }

  std::unique_ptr<Module> build_plain(const ModelLayer& layer, Feed& feed) {
    require_known(layer);
    try {
      infer_positions(layer, feed.shape);
      const bool is_tied = layer.type == "linear" && layer.options.has("tied_to");
      auto module =
          is_tied ? make_tied(layer)
                  : layer_registry().find(layer.type, layer.node).make(layer.options, feed.shape);
      feed = {module->output_shape(feed.shape), layer.described()};
      return module;
    } catch (const ShapeError& error) {
      fail_misfit(
          layer.node,
          fmt::format("layer '{}' ({}) does not fit {}, which gives shape {} per example: {}",
                      layer.path, layer.type, feed.source, feed.shape.to_string(),
                      without_name(error.what(), layer.type)));
    } catch (const std::bad_alloc& error) {
      throw MemoryError(fmt::format("{}: layer '{}' ({}) for {} per example: {}",
                                    layer.node.where(), layer.path, layer.type,
                                    feed.shape.to_string(), describe(error)));
    } catch (const ConfigError& error) {
      const std::string message = error.what();
      if (message.find("shape " + feed.shape.to_string()) == std::string::npos) throw;
      throw MisfitError(fmt::format("{}; {} gives that shape to layer '{}' ({})", message,
                                    feed.source, layer.path, layer.type));
    }
  }

  // A layer's message while it is not in a model yet, without the name that it does not know.
  static std::string without_name(std::string message, const std::string& type) {
    const std::string nameless = fmt::format("layer '' ({}): ", type);
    return message.starts_with(nameless) ? message.substr(nameless.size()) : message;
  }

  // Of sequences [length, features] there is a position for each that comes in.
  static void infer_positions(const ModelLayer& layer, const Shape& input) {
    if (layer.type != "position_embedding" || input.rank() != 2) return;
    layer.options.get("positions", input[0]);
  }

  // The linear layer that uses another one's weight.
  std::unique_ptr<Module> make_tied(const ModelLayer& layer) const {
    const Config& options = layer.options;
    const Config to = options.at("tied_to");
    for (const char* key : {"init", "init_fan_in"}) {
      if (!options.has(key)) continue;
      options.at(key).error(fmt::format("the weight is initialized by '{}'", to.text()));
    }
    if (!options.optional<bool>("trainable").value_or(true)) {
      options.at("trainable")
          .error(fmt::format("the weight belongs to '{}'; freeze it there", to.text()));
    }
    const ParameterPtr weight = weight_to_share(to);
    const Shape& shape = weight->shape();
    const auto require = [&](const char* key, int64_t size) {
      if (options.get<int64_t>(key, size) == size) return;
      options.at(key).error(
          fmt::format("is {}, but the weight that '{}' is tied to, '{}', has shape {}",
                      options.at(key).text(), layer.path, weight->name(), shape.to_string()));
    };
    if (shape.rank() == 2) {
      require("out_features", shape[0]);
      require("in_features", shape[1]);
    }
    return make_at<TiedLinear>(options, {.weight = weight, .bias = options.get("bias", true)});
  }

  static ParameterPtr own_weight(const Module& module) {
    for (const auto& [name, parameter] : module.own_parameters()) {
      if (name == "weight") return parameter;
    }
    return nullptr;
  }

  ParameterPtr weight_to_share(const Config& to) const {
    const auto path = to.as<std::string>();
    const auto found = built_.find(path);
    const ParameterPtr weight = found == built_.end() ? nullptr : own_weight(*found->second);
    if (weight != nullptr) return weight;
    if (found != built_.end()) {
      to.error(fmt::format("layer '{}' ({}) has no parameter `weight` of its own", path,
                           found->second->type()));
    }
    std::vector<std::string> candidates;
    for (const auto& [name, module] : built_) {
      const ParameterPtr parameter = own_weight(*module);
      if (parameter != nullptr && parameter->shape().rank() == 2) candidates.push_back(name);
    }
    to.error(fmt::format("no layer '{}' comes before this one{}{}", path,
                         candidates.empty() ? "" : "; ", suggest_name(path, candidates)));
  }

  std::unique_ptr<Module> build_residual(const ModelLayer& layer, Feed& feed) {
    auto residual = std::make_unique<Residual>();
    Feed body = feed, shortcut = feed;
    add_chain(*residual, layer.layers, body);
    const bool is_used = layer.always_shortcut || body.shape != feed.shape;
    for (const ModelLayer& part : layer.shortcut) {
      if (is_used) {
        infer_subsampling(part, shortcut.shape, body.shape);
        auto module = build(part, shortcut);
        naming_layer(part, [&] { residual->add_shortcut(part.name, std::move(module)); });
      } else {
        pass_over(part, feed, body);
      }
    }
    if (body.shape != shortcut.shape) {
      const bool is_identity = layer.shortcut.empty();
      const std::string message = fmt::format(
          "layer '{}' ({}) adds shapes that differ: {} per example, which its layers give ({}), "
          "and {}, which its {} ({}){}",
          layer.path, layer.type, body.shape.to_string(), body.source, shortcut.shape.to_string(),
          is_identity ? "input has" : "shortcut gives", shortcut.source,
          is_identity ? "; make them equal, or give it a `shortcut`" : "");
      fail_misfit(layer.node, message);
    }
    feed = {body.shape, layer.described()};
    return residual;
  }

  // A shortcut without weights takes its sizes from the layers next to it.
  static void infer_subsampling(const ModelLayer& part, const Shape& input, const Shape& output) {
    if (part.type != "subsample_pad" || input.rank() != 3 || output.rank() != 3) return;
    Config options = part.options;
    if (!options.has("channels")) options.set("channels", output[0]);
    if (options.has("stride") || output[1] < 1 || output[2] < 1) return;
    options.set("stride", Config::list({Config((input[1] + output[1] - 1) / output[1]),
                                        Config((input[2] + output[2] - 1) / output[2])}));
  }

  // A shortcut that is not used here: its keys are read as if it were, but shapes need not fit.
  void pass_over(const ModelLayer& part, const Feed& feed, const Feed& body) {
    const ModelLayer copy = unmarked(part);
    const std::map<std::string, Module*> built = built_;
    const LayerCheck check = std::exchange(check_, {});
    try {
      Feed input = feed;
      infer_subsampling(copy, input.shape, body.shape);
      build(copy, input);
      visit(copy, [](const ModelLayer& layer) {
        if (layer.kind == Kind::Plain) layer.options.require_all_read();
      });
    } catch (const MisfitError&) {
      visit(part, [this](const ModelLayer& layer) {
        if (layer.kind == Kind::Plain) require_known(layer);
      });
    }
    built_ = built;
    check_ = check;
    visit(part, [](const ModelLayer& layer) { layer.node.mark_read(); });
  }

  // A layer and all that it is made of.
  template <class Visit>
  static void visit(const ModelLayer& layer, const Visit& see) {
    for (const ModelLayer& part : layer.layers) visit(part, see);
    for (const ModelLayer& part : layer.shortcut) visit(part, see);
    see(layer);
  }

  std::unique_ptr<Module> build_parallel(const ModelLayer& layer, Feed& feed) {
    auto parallel = std::make_unique<Parallel>();
    Feed joined;
    for (const ModelLayer& branch : layer.layers) {
      Feed output = feed;
      if (layer.type == "qkv" && feed.shape.rank() > 0) {  // square by default
        branch.options.get("out_features", feed.shape.features());
      }
      auto module = build(branch, output);
      naming_layer(branch, [&] { parallel->add(branch.name, std::move(module)); });
      if (&branch == &layer.layers.front()) {
        joined = output;
        continue;
      }
      const std::optional<Shape> both = Parallel::side_by_side(joined.shape, output.shape);
      if (!both) {
        const std::string message = fmt::format(
            "layer '{}' ({}) concatenates shapes that do not fit: {} per example, up to {}, and "
            "{}, of {}; only the {} may differ",
            layer.path, layer.type, joined.shape.to_string(), joined.source,
            output.shape.to_string(), output.source,
            output.shape.rank() == 3 ? "channels, the first dimension," : "last dimension");
        fail_misfit(layer.node, message);
      }
      joined = {*both, output.source};
    }
    feed = {joined.shape, layer.described()};
    return parallel;
  }

  std::vector<std::string> types_;        // all that a layer can be
  std::map<std::string, Module*> built_;  // by full path
  LayerCheck check_;
};

// An error in the layers of a preset is an error in its keys.
template <class Work>
auto within(const ModelLayers& layers, const Work& work) -> decltype(work()) {
  try {
    return work();
  } catch (const ConfigError& error) {
    const std::string message = layers.as_written(error.what());
    if (layers.made_by.empty()) throw ConfigError(message);
    throw ConfigError(fmt::format("{}; within {}", message, layers.made_by));
  }
}

ModelLayers expanded(const Config& model, const ModelContext& context) {
  if (!is_preset(model)) return expand_model(model, context);
  ModelLayers preset;
  preset.made_by = preset_in_words(model);
  const Config section = within(preset, [&] { return expand_preset(model, context); });
  preset.made_by = preset_in_words(model);  // the type may come of from_hf
  preset.moved_keys = preset_keys(model);
  ModelLayers layers = within(preset, [&] { return expand_model(section); });
  layers.copies.push_back(section);
  layers.made_by = preset.made_by;
  std::ranges::copy(preset.moved_keys, std::back_inserter(layers.moved_keys));
  return layers;
}

}  // namespace

ModelLayers model_layers(const Config& model, const ModelContext& context) {
  ModelLayers layers = expanded(model, context);
  for (const auto& [name, definition] : layers.define.entries()) {
    if (layer_registry().contains(name)) {
      definition.error("there is already a layer named '" + name + "'");
    }
  }
  return layers;
}

std::unique_ptr<Sequential> build_model(const ModelLayers& layers, const Shape& example_shape,
                                        const LayerCheck& check) {
  Feed feed{.shape = example_shape};
  auto model = std::make_unique<Sequential>();
  within(layers, [&] {
    Builder(layers.define, check).add_chain(*model, layers.layers, feed);
    for (const Config& copy : layers.copies) copy.require_all_read();
  });
  Conv2d::find_readers(*model);
  return model;
}

}  // namespace lacuna
