#include "lacuna/framework/model/templates.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <array>

#include "lacuna/framework/core/names.h"
#include "lacuna/framework/model/expression.hpp"

namespace lacuna {
namespace {

constexpr std::array<std::string_view, 5> kKeysOfEveryLayer = {"type", "name", "repeat", "first",
                                                               "trainable"};

void require_argument_name(const Config& place, const std::string& name) {
  if (is_key_of_every_layer(name)) {
    place.error("an argument cannot be called '" + name + "': every layer has this key");
  }
  if (!begins_name(name.front()) || !std::ranges::all_of(name, is_name_character)) {
    place.error("an argument's name consists of letters, digits and '_', found '" + name + "'");
  }
}

Template read_template(const std::string& name, const Config& node) {
  if (!node.is_map()) node.fail("a template: a map with `arguments` and `layers`");
  const std::vector<std::string> keys = {"arguments", "layers"};
  for (const auto& [key, value] : node.entries()) {
    if (std::ranges::find(keys, key) == keys.end()) {
      value.error("unknown key '" + key + "'; " + suggest_name(key, keys));
    }
  }
  Template definition{name, node, {}, node.at("layers")};
  if (!definition.layers.is_list()) definition.layers.fail("a list of layers");
  const Config arguments = node.get("arguments");
  if (!arguments.is_null() && !arguments.is_map()) {
    arguments.fail("a map of arguments and their defaults (null: required)");
  }
  for (const auto& [argument, value] : arguments.entries()) {
    require_argument_name(value, argument);
    definition.arguments.emplace_back(argument, value);
  }
  node.mark_read();
  return definition;
}

}  // namespace

void require_layer_name(const Config& name, std::string_view whose) {
  const auto text = name.as<std::string>();
  const bool is_good = !text.empty() && !text.starts_with('.') && !text.ends_with('.') &&
                       text.find("..") == std::string::npos && text.find('/') == std::string::npos;
  if (is_good) return;
  name.error(fmt::format("{} name must be text between single dots, without '/', found '{}'", whose,
                         text));
}

bool is_key_of_every_layer(std::string_view key) {
  return std::ranges::find(kKeysOfEveryLayer, key) != kKeysOfEveryLayer.end();
}

std::vector<Template> read_templates(const Config& define) {
  std::vector<Template> templates;
  if (define.is_null()) return templates;
  if (!define.is_map()) define.fail("a map of templates");
  for (const auto& [name, node] : define.entries()) {
    Config text(name);
    text.set_position(node.position());
    require_layer_name(text, "a template's");
    templates.push_back(read_template(name, node));
  }
  return templates;
}

const Template* find_template(const std::vector<Template>& templates, std::string_view name) {
  for (const Template& definition : templates) {
    if (definition.name == name) return &definition;
  }
  return nullptr;
}

Scope bind_arguments(const Template& definition, const Config& layer) {
  std::vector<std::string> names;
  for (const auto& [name, value] : definition.arguments) names.push_back(name);
  Scope given;
  if (layer.is_map()) {
    for (const auto& [key, value] : layer.entries()) {
      if (is_key_of_every_layer(key)) continue;
      if (std::ranges::find(names, key) == names.end()) {
        value.error(fmt::format("the template '{}' has no argument '{}'{}{}", definition.name, key,
                                names.empty() ? "" : "; ", suggest_name(key, names)));
      }
      value.mark_read();
      if (!value.is_null()) given.arguments.emplace(key, value);
    }
  }
  Scope scope{definition.name, {}};
  for (const auto& [name, value] : definition.arguments) {
    const auto found = given.arguments.find(name);
    if (found != given.arguments.end()) {
      scope.arguments.emplace(name, found->second);
    } else if (!value.is_null()) {
      scope.arguments.emplace(name, substitute(value, scope));
    } else {
      layer.error(fmt::format("the template '{}' needs the argument '{}'", definition.name, name));
    }
  }
  return scope;
}

}  // namespace lacuna
