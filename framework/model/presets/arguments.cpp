#include <fmt/core.h>

#include <algorithm>
#include <map>

#include "lacuna/framework/config/names.h"
#include "lacuna/framework/io/yaml.h"
#include "lacuna/framework/model/presets/preset.hpp"
#include "lacuna/framework/model/shared_keys.hpp"

namespace lacuna::presets {
namespace {

// Keys of the section itself, which are others' to read.
const std::vector<std::string>& section_keys() {
  static const std::vector<std::string> keys = [] {
    std::vector<std::string> names = {"type", "from_hf", "init_from", "frozen", "widen"};
    names.insert(names.end(), kSharedKeys.begin(), kSharedKeys.end());
    return names;
  }();
  return keys;
}

// Of every config.json, and of none of its models.
const std::vector<std::string>& keys_of_every_family() {
  static const std::vector<std::string> keys = {"_attn_implementation",
                                                "_commit_hash",
                                                "_name_or_path",
                                                "architectures",
                                                "auto_map",
                                                "bos_token_id",
                                                "chunk_size_feed_forward",
                                                "cls_token_id",
                                                "decoder_start_token_id",
                                                "dtype",
                                                "eos_token_id",
                                                "finetuning_task",
                                                "gradient_checkpointing",
                                                "label2id",
                                                "mask_token_id",
                                                "model_type",
                                                "output_attentions",
                                                "output_hidden_states",
                                                "output_past",
                                                "pad_token_id",
                                                "prefix",
                                                "pretraining_tp",
                                                "problem_type",
                                                "return_dict",
                                                "sep_token_id",
                                                "task_specific_params",
                                                "tokenizer_class",
                                                "torch_dtype",
                                                "torchscript",
                                                "transformers_version",
                                                "use_bfloat16",
                                                "use_cache"};
  return keys;
}

Config read_keys(const Preset& preset) {
  return parse_yaml(preset.keys, fmt::format("preset {}", preset.name));
}

std::vector<std::string> names_in(const Config& map) {
  std::vector<std::string> names;
  for (const auto& [name, value] : map.entries()) names.push_back(name);
  return names;
}

bool contains(const std::vector<std::string>& names, std::string_view name) {
  return std::ranges::find(names, name) != names.end();
}

std::vector<std::string> passed_over(const Config& keys) {
  std::vector<std::string> all = keys_of_every_family();
  if (keys.has("passed_over")) {
    for (const Config& key : keys.at("passed_over").items()) all.push_back(key.text());
  }
  return all;
}

// Of the labels' names there are as many as labels. The data may have them in another order, in
// which outputs would get the names of others.
int64_t labels_of(const Config& section, const ModelContext& context) {
  const Config names = section.get("id2label");
  if (names.is_null()) return 0;
  if (!names.is_map()) names.fail("a map of labels to their names");
  names.mark_read();
  std::map<int64_t, std::string> of_labels;
  for (const auto& [label, name] : names.children()) {
    const Config number = Config::plain(label);
    if (number.is_number()) of_labels[number.as<int64_t>()] = name.text();
  }
  std::vector<std::string> ordered;
  for (const auto& [label, name] : of_labels) ordered.push_back(name);
  if (ordered != context.class_names && std::ranges::is_permutation(ordered, context.class_names)) {
    names.error(
        fmt::format("the outputs are {}, in this order, and the classes of the data {}; "
                    "set data.class_names: [{}]",
                    join(ordered, ", "), join(context.class_names, ", "), join(ordered, ", ")));
  }
  return static_cast<int64_t>(names.children().size());
}

bool is_no_dropout(const Config& layer) {
  const Config p = layer.peek("p");
  return layer.peek("type").text() == "dropout" && p.is_number() && p.as<double>() == 0.0;
}

// The list without dropouts that drop nothing, in the groups below as well.
Config without_idle_dropouts(const Config& layers) {
  Config kept = Config::list();
  kept.set_position(layers.position());
  for (const auto& [index, layer] : layers.children()) {
    if (is_no_dropout(layer)) continue;
    Config copy = layer.clone();
    const Config inner = layer.peek("layers");
    if (!inner.is_null()) copy.set("layers", without_idle_dropouts(inner));
    kept.push_back(copy);
  }
  return kept;
}

}  // namespace

bool is_key(const Preset& preset, std::string_view key) {
  const Config keys = read_keys(preset);
  return contains(names_in(keys.at("arguments")), key) ||
         (keys.has("only") && contains(names_in(keys.at("only")), key));
}

Arguments::Arguments(const Preset& preset, const Config& section, const ModelContext& context)
    : preset_(preset), keys_(read_keys(preset)), scope_{std::string(preset.name), {}} {
  require_known(section);
  refuse_others(section);
  read(section, context);
}

namespace {

// Rows of a table of learned positions.
bool counts_positions(std::string_view argument) {
  return argument == "n_positions" || argument == "max_position_embeddings";
}

}  // namespace

void Arguments::require_known(const Config& section) const {
  const std::vector<std::string> arguments = names_in(keys_.at("arguments"));
  const std::vector<std::string> ignored = passed_over(keys_);
  std::vector<std::string> known = arguments;
  if (keys_.has("only")) {
    for (const std::string& name : names_in(keys_.at("only"))) known.push_back(name);
  }
  for (const std::string& name : section_keys()) known.push_back(name);
  for (const auto& [key, value] : section.children()) {
    if (contains(known, key) || contains(ignored, key)) continue;
    if (key == "id2label" && contains(arguments, "num_labels")) continue;
    value.error(fmt::format("the preset '{}' has no key '{}'; {}", preset_.name, key,
                            suggest_name(key, known)));
  }
  for (const std::string& key : ignored) section.get(key).mark_read();
}

void Arguments::refuse_others(const Config& section) const {
  if (!keys_.has("only")) return;
  for (const auto& [key, value] : keys_.at("only").entries()) {
    const Config given = section.get(key);
    if (given.is_null() || given == value) continue;
    given.error(fmt::format("the preset '{}' only supports {}: {}, found {}", preset_.name, key,
                            value.is_null() ? "null" : value.text(), given.text()));
  }
}

void Arguments::read(const Config& section, const ModelContext& context) {
  const int64_t labels = labels_of(section, context);
  for (const auto& [name, fallback] : keys_.at("arguments").entries()) {
    Config value = section.get(name);
    value.mark_read();
    if (value.is_null() && name == "num_labels" && labels > 0) {
      value = Config(section.get<int64_t>(name, labels));
    } else if (value.is_null() && name == "num_labels" && context.num_classes > 0) {
      value = Config(section.get<int64_t>(name, context.num_classes));
    } else if (value.is_null() && name == "vocab_size" && context.vocabulary_size > 0) {
      value = Config(section.get<int64_t>(name, context.vocabulary_size));
    } else if (value.is_null() && counts_positions(name) && context.positions > 0) {
      value = Config(section.get<int64_t>(name, context.positions));
    } else if (value.is_null() && !fallback.is_null()) {
      value = default_of(name, fallback, section);
      // What follows from other keys goes on following from them.
      if (!mentions_arguments(fallback)) {
        Config(section).set(name, value.clone());
        section.get(name).mark_read();
      }
    }
    if (value.position().file.empty()) value.set_position(section.position());
    scope_.arguments.insert_or_assign(name, value);
  }
}

// The value of a key's expression, given the other keys; an error names the section.
Config Arguments::default_of(const std::string& name, const Config& fallback,
                             const Config& section) const {
  try {
    return substitute(fallback, scope_);
  } catch (const ConfigError& error) {
    const std::string_view what = error.what();
    const size_t reason = what.rfind("': ");
    section.error(fmt::format(
        "the preset '{}' cannot compute the default of {}, {}: {}; set {}, or change the values",
        preset_.name, name, fallback.text(),
        reason == std::string_view::npos ? what : what.substr(reason + 3), name));
  }
}

const Config& Arguments::at(std::string_view name) const {
  return scope_.arguments.find(name)->second;
}

std::string Arguments::choice(std::string_view name,
                              const std::vector<std::string>& choices) const {
  const auto value = at(name).as<std::string>();
  if (contains(choices, value)) return value;
  at(name).error(fmt::format("unknown {} '{}' of the preset '{}'; {}", name, value, preset_.name,
                             suggest_name(value, choices)));
}

void Arguments::define(const std::string& name, const Config& value) {
  scope_.arguments.insert_or_assign(name, value);
}

void Arguments::define_activation(const std::string& name, std::string_view key) {
  const auto gelu = [](const char* approximate) {
    return Config::map({{"type", "gelu"}, {"approximate", approximate}});
  };
  const std::map<std::string, Config> layers = {{"gelu", gelu("none")},
                                                {"gelu_new", gelu("tanh")},
                                                {"gelu_pytorch_tanh", gelu("tanh")},
                                                {"relu", Config("relu")},
                                                {"relu2", Config("squared_relu")},
                                                {"sigmoid", Config("sigmoid")},
                                                {"silu", Config("silu")},
                                                {"swish", Config("silu")},
                                                {"tanh", Config("tanh")}};
  std::vector<std::string> names;
  for (const auto& [known, layer] : layers) names.push_back(known);
  define(name, layers.at(choice(key, names)).clone());
}

void Arguments::define_normal(const std::string& name, double standard_deviation,
                              const char* type) {
  define(name, Config::map({{"type", type}, {"std", standard_deviation}}));
}

Config Arguments::layers(std::string_view yaml) const {
  const Config text = parse_yaml(yaml, fmt::format("preset {}", preset_.name));
  return without_idle_dropouts(substitute(text, scope_));
}

Config Arguments::templates(std::string_view yaml) const {
  return parse_yaml(yaml, fmt::format("preset {}", preset_.name));
}

void append(Config& list, const Config& more) {
  for (const auto& [index, item] : more.children()) list.push_back(item.clone());
}

}  // namespace lacuna::presets
