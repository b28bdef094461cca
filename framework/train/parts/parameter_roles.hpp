// What each parameter is in its network, and how wide the network is there next to a smaller one.
#pragma once

#include <optional>
#include <string_view>
#include <vector>

#include "lacuna/framework/config/config.h"
#include "lacuna/framework/core/shape.h"
#include "lacuna/framework/model/model_layers.hpp"
#include "lacuna/framework/nn/module.h"

namespace lacuna {

/// The place of a parameter in the model. Widths are those of a network's inner features; what the
/// data and the classes determine is no width.
enum class ParameterRole {
  Input,     ///< weight of a layer that reads the data
  Hidden,    ///< weight of a layer from inner features to inner features
  Output,    ///< weight of a layer that gives the model's outputs
  Vector,    ///< bias, or scale and shift of a norm
  Table,     ///< embedding of tokens, positions or types
  LastNorm,  ///< scale or shift of the norm before a head that is tied to an embedding
};
std::string_view role_in_words(ParameterRole role);

/// A parameter next to that of the same network with other widths, its base.
struct SizedParameter {
  ParameterPtr parameter;
  ParameterRole role = ParameterRole::Vector;
  double in = 1.0;   ///< inner features that it reads, over those of the base; 1: it reads the data
  double out = 1.0;  ///< inner features that it gives, over those of the base
  /// The standard deviation that its layer would draw with the base's widths, over the one it
  /// draws.
  double drawn = 1.0;
  bool is_normalized = false;    ///< whether a batch norm follows, so that its size has no effect
  bool counts_nonzeros = false;  ///< whether its deviation follows the mask already
};

/// An attention layer whose model gives no scale to it.
struct SizedAttention {
  double ratio = 1.0;  ///< features of its heads over those of the base, which has as many heads
  double scale = 1.0;  ///< of q · k, so that at the base's width it is 1/√d
  Config node;         ///< where it is written
};

struct SizedModel {
  std::vector<SizedParameter> parameters;
  std::vector<SizedAttention> attention;
  /// A head that is tied to an embedding without a norm before it, described; empty: none.
  std::string head_without_norm;
};

/// `width`: that of the network as a whole, by which all of its inner features grow; where it is
/// absent, those that a layer reads are its width, for convolutions the channels. *Errors:*
/// ConfigError at a layer that multiplies by a weight of its own and is no AffineLayer.
SizedModel size_parameters(const ModelLayers& layers, Module& model, const Shape& example,
                           double base_width, std::optional<double> width);

}  // namespace lacuna
