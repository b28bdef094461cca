// The config.json of a preset, for Hugging Face's transformers.
#include <fmt/core.h>

#include <algorithm>
#include <array>

#include "lacuna/framework/io/yaml.h"
#include "lacuna/framework/model/presets/preset.hpp"
#include "lacuna/framework/model/presets/presets.hpp"

namespace lacuna {
namespace presets {
namespace {

// Keys of presets that are no keys of config.json.
bool is_own(std::string_view key) {
  return key == "head" || key == "pooling" || key == "num_labels";
}

struct Architectures {
  std::string_view preset, classification, language;  // what the heads make of it
};
constexpr std::array<Architectures, 5> kArchitectures = {{
    {"bert", "BertForSequenceClassification", "BertForMaskedLM"},
    {"distilbert", "DistilBertForSequenceClassification", "DistilBertForMaskedLM"},
    {"gpt2", "", "GPT2LMHeadModel"},
    {"llama", "", "LlamaForCausalLM"},
    {"vit", "ViTForImageClassification", ""},
}};

bool is_classifier(const Preset& preset, const Arguments& arguments) {
  if (preset.name == "vit") return true;
  if (preset.name != "bert" && preset.name != "distilbert") return false;
  return arguments.at("head").as<std::string>() == "classification";
}

std::string architecture_of(const Config& model, const Preset& preset, const Arguments& arguments) {
  for (const Architectures& known : kArchitectures) {
    if (known.preset != preset.name) continue;
    const bool classifies = is_classifier(preset, arguments);
    if (classifies && preset.name != "vit" && arguments.at("pooling").text() == "mean") {
      model.get("pooling").error(
          "Hugging Face's models of this family have no `pooling: mean`; export to safetensors or "
          "npz");
    }
    return std::string(classifies ? known.classification : known.language);
  }
  model.get("type").error(fmt::format(
      "the preset '{}' is not a model family of Hugging Face; export to safetensors or npz",
      preset.name));
}

void add_labels(Config& json, int64_t count, const std::vector<std::string>& names) {
  Config to_label = Config::map(), to_id = Config::map();
  const bool has_names = static_cast<int64_t>(names.size()) == count;
  for (int64_t i = 0; i < count; ++i) {
    const std::string name = has_names ? names[static_cast<size_t>(i)] : fmt::format("LABEL_{}", i);
    to_label.set(std::to_string(i), name);
    to_id.set(name, i);
  }
  json.set("id2label", to_label);
  json.set("label2id", to_id);
}

void add_image(Config& json, const Config& model, const Shape& example) {
  if (example.rank() != 3 || example[1] != example[2]) {
    model.error(
        fmt::format("images of shape {} are not square, as Hugging Face's ViT takes them; "
                    "export to safetensors or npz",
                    example.to_string()));
  }
  if (!json.has("num_channels")) json.set("num_channels", example[0]);
  if (!json.has("image_size")) json.set("image_size", example[1]);
}

// The longest text that rotary positions are meant for, of which the model itself knows nothing.
void add_positions(Config& json, const Config& model, const Shape& example) {
  const Config given = model.get("max_position_embeddings");
  constexpr int64_t kDefault = 2048;
  const int64_t length = std::max(kDefault, example.rank() == 1 ? example[0] : 0);
  json.set("max_position_embeddings", given.is_null() ? Config(length) : given.clone());
}

Config config_json(const Config& model, const Preset& preset, const HuggingFaceFacts& facts) {
  const Arguments arguments(preset, model, {});
  const Config architectures = Config::list({architecture_of(model, preset, arguments)});
  Config json =
      Config::map({{"architectures", architectures}, {"model_type", std::string(preset.name)}});
  const Config keys = parse_yaml(preset.keys, fmt::format("preset {}", preset.name));
  for (const auto& [key, fallback] : keys.at("arguments").entries()) {
    if (!is_own(key) && arguments.has(key)) json.set(key, arguments.at(key).clone());
  }
  for (const std::string& key : kept_keys()) {
    if (model.has(key) && !json.has(key)) json.set(key, model.at(key).clone());
  }
  json.set("torch_dtype", "float32");
  if (preset.name == "vit") add_image(json, model, facts.example_shape);
  if (preset.name == "llama") add_positions(json, model, facts.example_shape);
  if (is_classifier(preset, arguments)) {
    add_labels(json, arguments.at("num_labels").as<int64_t>(), facts.class_names);
  }
  return json;
}

}  // namespace
}  // namespace presets

Config hugging_face_config(const Config& model, const HuggingFaceFacts& facts) {
  const Config section = model.clone();  // reading it leaves marks
  const auto name = section.required<std::string>("type");
  for (const presets::Preset* preset : presets::all_presets()) {
    if (preset->name == name) return presets::config_json(section, *preset, facts);
  }
  section.at("type").error(fmt::format("there is no preset '{}'", name));
}

}  // namespace lacuna
