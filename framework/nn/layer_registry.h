// The registry of layers: names in a configuration → modules.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "lacuna/framework/config/registry.h"
#include "lacuna/framework/nn/module.h"
#include "lacuna/framework/nn/onnx_graph.h"
#include "lacuna/framework/nn/unit_graph.h"

namespace lacuna {

/// A layer that a configuration can name: its factory, and the keys that a model fills in.
struct LayerType {
  /// Gets the layer's map of options and the shape of one example's input, without the batch
  /// dimension, so that sizes can be left out. It throws ConfigError at the invalid key, and
  /// ShapeError if the layer does not accept that input.
  std::function<std::unique_ptr<Module>(const Config& options, const Shape& input)> make;
  /// Whether it reads `init_fan_in`, which a model may set for all of its layers.
  bool has_fan_in = false;
  /// Whether it reads `sparse_gradient`, which a model may set for all of its layers.
  bool has_sparse_gradient = false;
  /// Its key for the number of outputs: in the last layer of a model, its default is the number
  /// that the data requires.
  std::string outputs_key = {};
  /// Its key for the number of token ids; the default is that of the data.
  std::string vocabulary_key = {};
  /// How an export to ONNX writes it, for modules whose type() is its name. Without this, models
  /// with this layer cannot be exported.
  OnnxForm onnx = {};
  /// How its outputs depend on its inputs, unit by unit (neurons, channels, heads), for modules
  /// whose type() is its name. Without this, `lacuna shrink` removes neither.
  UnitForm units = {};

  std::unique_ptr<Module> operator()(const Config& options, const Shape& input) const {
    return make(options, input);
  }
};

using LayerRegistry = Registry<LayerType>;

/// The one registry of this program. The built-in layers are added by `register_layers`
/// (layers/builtin.hpp).
LayerRegistry& layer_registry();

}  // namespace lacuna
