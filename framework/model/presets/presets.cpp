#include "lacuna/framework/model/presets/presets.hpp"

#include <fmt/core.h>

#include <algorithm>

#include "lacuna/framework/config/names.h"
#include "lacuna/framework/model/presets/preset.hpp"
#include "lacuna/framework/model/shared_keys.hpp"

namespace lacuna {
namespace presets {

const std::vector<const Preset*>& all_presets() {
  static const std::vector<const Preset*> presets = {&bert(), &cifar_resnet(), &distilbert(),
                                                     &gpt2(), &llama(),        &vit()};
  return presets;
}

}  // namespace presets

bool is_preset(const Config& model) {
  return model.is_map() && (model.has("type") || model.has("from_hf"));
}

std::string unknown_layer(const std::string& name, const std::vector<std::string>& known) {
  const std::vector<std::string> presets = preset_names();
  if (std::ranges::find(presets, name) == presets.end()) {
    return "unknown layer '" + name + "'; " + suggest_name(name, known);
  }
  return "'" + name + "' is a preset, which replaces all layers: `model: {type: " + name + ", …}`";
}

std::vector<std::string> preset_names() {
  std::vector<std::string> names;
  for (const presets::Preset* preset : presets::all_presets()) names.emplace_back(preset->name);
  return names;
}

std::vector<std::pair<std::string, std::string>> preset_list() {
  std::vector<std::pair<std::string, std::string>> list;
  for (const presets::Preset* preset : presets::all_presets()) {
    list.emplace_back(preset->name, preset->about);
  }
  return list;
}

std::string preset_in_words(const Config& model) {
  if (!model.has("type")) return "";
  const std::string at = model.position().text();
  return fmt::format("the preset '{}'{}{}", model.at("type").text(), at.empty() ? "" : " at ", at);
}

std::vector<std::pair<std::string, std::string>> preset_keys(const Config& model) {
  std::vector<std::pair<std::string, std::string>> keys;
  for (const auto& [key, value] : model.children()) {
    const std::string at = value.position().text();
    if (at.empty()) continue;
    const std::string written = at + ": model." + key;
    keys.emplace_back(at + ": " + key, written);  // of keys that the layers' section has as well
    keys.emplace_back(at, written);
  }
  return keys;
}

std::optional<PresetWidths> preset_widths(const Config& model) {
  if (!is_preset(model)) return std::nullopt;
  for (const presets::Preset* preset : presets::all_presets()) {
    if (preset->name != model.peek("type").text()) continue;
    return PresetWidths{{preset->widths.begin(), preset->widths.end()},
                        {preset->heads.begin(), preset->heads.end()}};
  }
  return std::nullopt;
}

Config expand_preset(const Config& model, const ModelContext& context) {
  Config section = model;  // the same node
  for (const char* key : {"layers", "define"}) {
    if (model.has(key)) {
      model.at(key).error(fmt::format("a model is a preset (`{}`) or has {} of its own, not both",
                                      model.has("type") ? "type" : "from_hf",
                                      key == std::string("layers") ? "layers" : key));
    }
  }
  if (model.has("from_hf")) presets::read_hugging_face(section, context);
  const auto name = section.required<std::string>("type");
  for (const presets::Preset* preset : presets::all_presets()) {
    if (preset->name != name) continue;
    presets::Arguments arguments(*preset, section, context);
    Config layers = preset->section(arguments);
    for (const char* key : kSharedKeys) {
      const Config given = section.get(key);
      if (!given.is_null()) layers.set(key, given.clone());
    }
    return layers;
  }
  section.at("type").error(
      fmt::format("unknown preset '{}'; {}; a list of layers is given as "
                  "`layers`",
                  name, suggest_name(name, preset_names())));
}

}  // namespace lacuna
