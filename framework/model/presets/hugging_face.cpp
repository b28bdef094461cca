// config.json of a model of Hugging Face's, as the keys of a preset. JSON is YAML, with positions.
#include <fmt/core.h>

#include <algorithm>
#include <filesystem>
#include <system_error>

#include "lacuna/framework/config/names.h"
#include "lacuna/framework/core/error.h"
#include "lacuna/framework/io/yaml.h"
#include "lacuna/framework/model/presets/preset.hpp"
#include "lacuna/framework/model/presets/presets.hpp"

namespace lacuna::presets {
namespace {

Config load_config_json(const Config& from_hf, const std::string& folder) {
  Config config;
  try {
    config = load_yaml(folder + "/config.json");
  } catch (const ConfigError& error) {
    from_hf.error(error.what());
  }
  if (!config.is_map()) config.fail("a JSON object");
  if (!config.has("model_type")) {
    config.error(
        "model_type, the model's family, is missing; add it, as in \"model_type\": \"gpt2\"");
  }
  return config;
}

const Preset& family_of(const Config& config) {
  const Config type = config.at("model_type");
  for (const Preset* preset : all_presets()) {
    if (type.text() == preset->name) return *preset;
  }
  type.error(fmt::format(
      "there is no preset for the family '{}', only for {}; another model's layers can be "
      "written out under `layers`, and its weights read by `init_from`",
      type.text(), join(preset_names(), ", ")));
}

// Newer files keep what concerns rotary positions in a map of its own.
void flatten_rotary(const Preset& preset, Config& config) {
  const Config rotary = config.get("rope_parameters");
  if (!rotary.is_map() || !is_key(preset, "rope_theta")) return;
  for (const auto& [key, value] : rotary.entries()) {
    if (key == "rope_theta") continue;
    const bool is_type = key == "rope_type" || key == "type";
    if (is_type ? value.text() == "default" : value.is_number() && value.as<double>() == 1.0) {
      continue;
    }
    value.error(is_type ? "only rotary positions of the default type are supported"
                        : "rope_parameters: only rope_theta is supported, found " + key);
  }
  if (rotary.has("rope_theta")) config.set("rope_theta", rotary.at("rope_theta").clone());
}

// Where the folder's weights are; the folder itself where they are in several files, which their
// reader finds, or pickles, for which it explains how they are converted.
std::string weights_in(const std::string& folder) {
  const std::string file = folder + "/model.safetensors";
  std::error_code unknown;
  if (std::filesystem::exists(file, unknown)) return file;
  for (const char* other :
       {"/model.safetensors.index.json", "/pytorch_model.bin", "/pytorch_model.bin.index.json"}) {
    if (std::filesystem::exists(folder + other, unknown)) return folder;
  }
  return file;
}

// Llama's rotary positions have no end, but texts that the weights were trained on have one.
bool is_kept(const Preset& preset, const std::string& key) {
  return std::ranges::find(kept_keys(), key) != kept_keys().end() ||
         (preset.name == "llama" && key == "max_position_embeddings");
}

// A file of a masked language model is one where labels are those of tokens; elsewhere its trunk
// gets a new head, which classifies.
bool is_masked_lm(const Preset& preset, const Config& config, const ModelContext& context) {
  if (!is_key(preset, "head") || !context.has_token_labels) return false;
  const Config names = config.get("architectures");
  if (!names.is_list()) return false;
  const std::vector<Config> items = names.items();
  return std::ranges::any_of(
      items, [](const Config& name) { return name.text().ends_with("ForMaskedLM"); });
}

}  // namespace

const std::vector<std::string>& kept_keys() {
  static const std::vector<std::string> keys = {"bos_token_id",  "cls_token_id", "eos_token_id",
                                                "mask_token_id", "pad_token_id", "sep_token_id"};
  return keys;
}

void read_hugging_face(Config& section, const ModelContext& context) {
  const Config from_hf = section.at("from_hf");
  const auto folder = from_hf.as<std::string>();
  Config config = load_config_json(from_hf, folder);
  const Preset& preset = family_of(config);
  if (section.has("type") && section.at("type").text() != preset.name) {
    section.at("type").error(
        fmt::format("'{}' is a model of the family '{}'; leave `type` out", folder, preset.name));
  }
  flatten_rotary(preset, config);
  section.set("type", Config(std::string(preset.name)));
  for (const auto& [key, value] : config.entries()) {
    const bool names_labels = key == "id2label" && is_key(preset, "num_labels");
    const bool is_wanted = is_key(preset, key) || names_labels || is_kept(preset, key);
    // Old files of Llama have -1 for a padding token that there is not.
    const bool is_none =
        value.is_null() || (key == "pad_token_id" && value.is_number() && value.as<double>() < 0);
    if (!is_wanted || is_none || section.has(key)) continue;
    const SourcePosition position = value.position();
    section.set(key, value.clone());
    section.get(key).set_position(position);
  }
  if (!section.has("head") && is_masked_lm(preset, config, context)) {
    section.set("head", Config("masked_lm"));
  }
  if (!section.has("init_from")) {
    Config file(weights_in(folder));
    file.set_position(from_hf.position());
    section.set("init_from", file);
  }
  section.erase("from_hf");
}

}  // namespace lacuna::presets
