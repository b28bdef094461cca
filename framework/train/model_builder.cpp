#include "lacuna/framework/train/model_builder.h"

#include <fmt/core.h>

#include <algorithm>
#include <map>
#include <string>
#include <utility>

#include "lacuna/framework/core/error.h"
#include "lacuna/framework/nn/layer_registry.h"

namespace lacuna {
namespace {

// The input of the next layer: its shape, and who made it, for messages.
struct Feed {
  Shape shape;
  std::string source = "the data";
};

std::string type_of(const Config& layer) {
  if (layer.is_scalar()) return layer.as<std::string>();
  if (!layer.is_map()) layer.fail("a layer: its type, or a map with `type`");
  return layer.required<std::string>("type");
}

// A layer that is given by its type alone has no options, but a position all the same.
Config options_of(const Config& layer) {
  if (layer.is_map()) return layer;
  Config options = Config::map();
  options.set_position(layer.position());
  return options;
}

bool has_child(const Module& module, const std::string& name) {
  return std::ranges::any_of(module.children(),
                             [&](const auto& child) { return child.first == name; });
}

std::unique_ptr<Module> build_layer(const Config& layer, const std::string& type,
                                    const std::string& name, const Feed& feed) {
  const auto& factory = layer_registry().find(type, layer.is_map() ? layer.at("type") : layer);
  try {
    std::unique_ptr<Module> module = factory.make(options_of(layer), feed.shape);
    module->output_shape(feed.shape);
    return module;
  } catch (const ShapeError& error) {
    layer.error("layer '" + name + "' (" + type + ") does not fit " + feed.source +
                ", which gives shape " + feed.shape.to_string() + " per example: " + error.what());
  }
}

constexpr const char* kFanIn = "init_fan_in";

// To the linear layers that give none. What is no list of layers is found out when they are built.
void give_fan_in(const Config& layers, const Config& fan_in) {
  if (!layers.is_list()) return;
  for (Config layer : layers.items()) {
    if (!layer.is_map() || !layer.get("type").is_scalar()) continue;
    const std::string type = layer.get("type").text();
    if (type == "sequential") give_fan_in(layer.get("layers"), fan_in);
    if (type == "linear" && !layer.has(kFanIn)) layer.set(kFanIn, fan_in.clone());
  }
}

// Builds a chain whose full names begin with `prefix`; `feed` goes in and what comes out, comes
// out.
std::unique_ptr<Sequential> build_chain(const Config& layers, const std::string& prefix,
                                        Feed& feed) {
  if (!layers.is_list()) layers.fail("a list of layers");
  auto chain = std::make_unique<Sequential>();
  std::map<std::string, int> counts;
  for (const Config& layer : layers.items()) {
    const std::string type = type_of(layer);
    std::string name = fmt::format("{}{}", type, ++counts[type]);
    if (layer.is_map()) name = layer.get<std::string>("name", name);
    if (has_child(*chain, name)) {
      layer.error("two layers are named '" + name + "'; give one of them another `name`");
    }
    std::unique_ptr<Module> module;
    if (type == "sequential") {
      module = build_chain(options_of(layer).at("layers"), prefix + name + ".", feed);
    } else {
      module = build_layer(layer, type, prefix + name, feed);
      feed = {module->output_shape(feed.shape), "layer '" + prefix + name + "' (" + type + ")"};
    }
    try {
      chain->add(name, std::move(module));
    } catch (const StateError& error) {
      layer.error(error.what());
    }
  }
  if (chain->children().empty()) layers.fail("at least one layer");
  return chain;
}

}  // namespace

Config model_layers(const Config& model) {
  if (model.is_list()) return model;
  if (!model.is_map()) model.fail("a list of layers, or a map with `layers`");
  const Config layers = model.at("layers"), fan_in = model.get(kFanIn);
  if (!fan_in.is_null()) give_fan_in(layers, fan_in);
  return layers;
}

std::unique_ptr<Sequential> build_model(const Config& layers, const Shape& example_shape) {
  Feed feed{.shape = example_shape};
  return build_chain(layers, "", feed);
}

}  // namespace lacuna
