// The templates of a model: what `define` holds, and their arguments bound to a layer that is one.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "lacuna/framework/config/config.h"
#include "lacuna/framework/model/substitution.h"

namespace lacuna {

/// Layers under a name, with arguments in them.
struct Template {
  std::string name;
  Config node;                                            ///< where it is defined
  std::vector<std::pair<std::string, Config>> arguments;  ///< and their defaults; null: required
  Config layers;
};

/// Reads `define`: a map of templates, or null. What is in a template is not looked into before it
/// is used. *Errors:* ConfigError on keys other than `arguments` and `layers`, and on an argument
/// whose name is no name, or a key of every layer.
std::vector<Template> read_templates(const Config& define);

/// The template of that name; null if there is none.
const Template* find_template(const std::vector<Template>& templates, std::string_view name);

/// Whether every layer may have this key, so that it is not an argument of a template: type, name,
/// repeat, first.
bool is_key_of_every_layer(std::string_view key);

/// *Errors:* ConfigError when the text is empty, has a slash, or a dot at an end or next to
/// another; `whose` begins the message ("a layer's").
void require_layer_name(const Config& name, std::string_view whose);

/// The arguments that a layer (its type alone, or a map) gives the template, defaults for the rest;
/// a default may mention those before it. Marks the layer as read. *Errors:* ConfigError at a key
/// that is no argument, with the nearest, and at the layer when a required one is missing.
Scope bind_arguments(const Template& definition, const Config& layer);

}  // namespace lacuna
