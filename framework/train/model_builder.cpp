#include "lacuna/framework/train/model_builder.h"

#include <map>
#include <string>
#include <utility>

#include "lacuna/framework/core/error.h"
#include "lacuna/framework/nn/layer_registry.h"

namespace lacuna {
namespace {

std::string type_of(const Config& layer) {
  if (layer.is_scalar()) return layer.as<std::string>();
  if (!layer.is_map()) layer.fail("a layer: its type, or a map with `type`");
  return layer.required<std::string>("type");
}

// `before` names what made the input: "the data", or a layer.
std::unique_ptr<Module> build_layer(const Config& layer, const Shape& input,
                                    const std::string& name, const std::string& before) {
  const std::string type = type_of(layer);
  if (type == "sequential") return build_model(layer.at("layers"), input);
  const Config named = layer.is_map() ? layer.at("type") : layer;
  const auto& factory = layer_registry().find(type, named);
  try {
    const Config options = layer.is_map() ? layer : Config();
    std::unique_ptr<Module> module = factory.make(options, input);
    module->output_shape(input);
    return module;
  } catch (const ShapeError& error) {
    layer.error("layer '" + name + "' (" + type + ") does not fit the output of " + before +
                ", which has shape " + input.to_string() + " per example: " + error.what());
  }
}

}  // namespace

Config model_layers(const Config& model) { return model.is_list() ? model : model.at("layers"); }

std::unique_ptr<Sequential> build_model(const Config& layers, const Shape& example_shape) {
  auto model = std::make_unique<Sequential>();
  std::map<std::string, int> counts;
  Shape shape = example_shape;
  std::string before = "the data";
  for (const Config& layer : layers.items()) {
    const std::string type = type_of(layer);
    std::string name = type + std::to_string(++counts[type]);
    if (layer.is_map()) name = layer.get<std::string>("name", name);
    std::unique_ptr<Module> module = build_layer(layer, shape, name, before);
    shape = module->output_shape(shape);
    try {
      model->add(name, std::move(module));
    } catch (const StateError& error) {
      layer.error(error.what());
    }
    before = "layer '" + name + "' (" + type + ")";
  }
  if (model->children().empty()) layers.fail("at least one layer");
  return model;
}

}  // namespace lacuna
