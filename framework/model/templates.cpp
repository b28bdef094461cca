#include "lacuna/framework/model/templates.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <optional>
#include <utility>

#include "lacuna/framework/config/names.h"
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

// The first argument of the template that the default mentions and that has no value yet.
std::optional<std::string> missing_for(const Config& value, const Template& definition,
                                       const Scope& scope) {
  for (const std::string& name : mentioned_arguments(value)) {
    const bool is_argument =
        std::ranges::any_of(definition.arguments, [&](const auto& a) { return a.first == name; });
    if (is_argument && !scope.arguments.contains(name)) return name;
  }
  return std::nullopt;
}

// Defaults may be made of other arguments, whichever stands first.
void fill_in_defaults(const Template& definition, Scope& scope) {
  for (bool is_stuck = false; !is_stuck;) {
    is_stuck = true;
    for (const auto& [name, value] : definition.arguments) {
      if (scope.arguments.contains(name) || missing_for(value, definition, scope)) continue;
      scope.arguments.emplace(name, substitute(value, scope));
      is_stuck = false;
    }
  }
  for (const auto& [name, value] : definition.arguments) {
    if (scope.arguments.contains(name)) continue;
    value.error(fmt::format("the default of '{}' depends on that of '{}', in a circle", name,
                            *missing_for(value, definition, scope)));
  }
}

}  // namespace

void require_layer_name(const Config& name, std::string_view whose) {
  const auto text = name.as<std::string>();
  const auto is_control = [](char c) { return static_cast<unsigned char>(c) < 32 || c == 127; };
  if (std::ranges::any_of(text, is_control)) {
    name.error(fmt::format("{} name holds a control character, such as an end of a line", whose));
  }
  if (text.find_first_of("*?[") != std::string::npos) {
    name.error(
        fmt::format("{} name must not contain '*', '?' or '[', which are wildcards in param_filter "
                    "and frozen, found '{}'",
                    whose, text));
  }
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
  Scope scope{definition.name, std::move(given.arguments)};
  for (const auto& [name, value] : definition.arguments) {
    if (!value.is_null() || scope.arguments.contains(name)) continue;
    layer.error(fmt::format("the template '{}' needs the argument '{}'", definition.name, name));
  }
  fill_in_defaults(definition, scope);
  return scope;
}

}  // namespace lacuna
