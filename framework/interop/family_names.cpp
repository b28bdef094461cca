#include "lacuna/framework/interop/family_names.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <map>
#include <system_error>

#include "lacuna/framework/config/names.h"
#include "lacuna/framework/core/error.h"
#include "lacuna/framework/io/yaml.h"
#include "lacuna/framework/model/presets/foreign_names.hpp"

namespace lacuna {
namespace {

std::string quoted(const std::string& text) { return Config(text).to_json(); }

// The number that a text is, of a layer; nothing where it is none.
std::optional<int64_t> layer_number(std::string_view text) {
  constexpr size_t kMostDigits = 6;
  const bool is_number = !text.empty() && text.size() <= kMostDigits &&
                         text.find_first_not_of("0123456789") == std::string_view::npos;
  return is_number ? std::optional(std::stoll(std::string(text))) : std::nullopt;
}

}  // namespace

bool FamilyNames::has_anchor(std::string_view anchor, std::string_view prefix) {
  for (const std::string_view wrapper : {"", "module.", "_orig_mod.", "model.", "net."}) {
    for (const std::string_view own : {std::string_view(), prefix}) {
      const std::string before = std::string(wrapper) + std::string(own);
      if (!stored_.items().contains(before + std::string(anchor))) continue;
      wrapper_ = wrapper;
      prefix_ = own;
      return true;
    }
  }
  return false;
}

std::optional<Shape> FamilyNames::shape_of(const std::string& name, int rank) const {
  const auto found = stored_.items().find(wrapper_ + name);
  if (found == stored_.items().end()) return std::nullopt;
  const Shape& shape = found->second.shape;
  return shape.rank() == rank && shape.numel() > 0 ? std::optional(shape) : std::nullopt;
}

std::optional<Shape> FamilyNames::trunk(const std::string& name, int rank) const {
  return shape_of(prefix_ + name, rank);
}

std::optional<Shape> FamilyNames::head(const std::string& name, int rank) const {
  return shape_of(name, rank);
}

bool FamilyNames::has_trunk(const std::string& name) const {
  return stored_.items().contains(wrapper_ + prefix_ + name);
}

bool FamilyNames::has_head(const std::string& name) const {
  return stored_.items().contains(wrapper_ + name);
}

int64_t FamilyNames::count_layers(const std::string& stem,
                                  std::span<const std::string_view> known) const {
  const std::string before = wrapper_ + prefix_ + stem + ".";
  int64_t layers = 0;
  for (const auto& [name, item] : stored_.items()) {
    if (!name.starts_with(before)) continue;
    const size_t dot = std::min(name.find('.', before.size()), name.size());
    const auto number =
        layer_number(std::string_view(name).substr(before.size(), dot - before.size()));
    const std::string_view rest = std::string_view(name).substr(std::min(dot + 1, name.size()));
    const bool is_known =
        is_bookkeeping(name, item.shape.rank()) || std::ranges::find(known, rest) != known.end();
    if (!number || !is_known) return 0;
    layers = std::max(layers, *number + 1);
  }
  return layers;
}

bool FamilyNames::are_equal(const std::string& head, const std::string& trunk) const {
  StateDict state;
  stored_.copy(wrapper_ + head, "head", state);
  stored_.copy(wrapper_ + prefix_ + trunk, "trunk", state);
  const auto a = state.get<Tensor>("head"), b = state.get<Tensor>("trunk");
  return a.shape() == b.shape() && std::ranges::equal(a.storage(), b.storage());
}

bool FamilyNames::has_file(const char* name) const {
  std::error_code unknown;
  return !folder_.empty() &&
         std::filesystem::is_regular_file(std::filesystem::path(folder_) / name, unknown);
}

std::string FamilyNames::path_of(const char* name) const {
  return has_file(name) ? quoted((std::filesystem::path(folder_) / name).string()) : kFillIn;
}

// Null where there is none, or it cannot be read.
Config FamilyNames::json(const char* name) const {
  if (!has_file(name)) return {};
  try {
    return load_yaml(folder_ + "/" + name);
  } catch (const ConfigError&) {
    return {};
  }
}

std::vector<std::string> FamilyNames::label_names() const {
  const Config names = json("config.json").peek("id2label");
  if (!names.is_map()) return {};
  std::map<int64_t, std::string> of_labels;
  for (const auto& [label, name] : names.children()) {
    const std::optional<int64_t> number = layer_number(label);
    if (!number || name.text() == "LABEL_" + label) return {};
    of_labels[*number] = name.text();
  }
  std::vector<std::string> ordered;
  for (const auto& [label, name] : of_labels) ordered.push_back(name);
  return ordered;
}

bool FamilyNames::is_cased() const {
  const Config lower = json("tokenizer_config.json").peek("do_lower_case");
  if (lower.is_bool()) return !lower.as<bool>();
  if (!has_file("vocab.txt")) return false;
  std::ifstream words(std::filesystem::path(folder_) / "vocab.txt");
  for (std::string word; std::getline(words, word);) {
    const bool is_capital = !word.empty() && word[0] >= 'A' && word[0] <= 'Z';
    if (is_capital) return true;  // others are in brackets: [CLS]
  }
  return false;
}

// Weights of other families may have the same names, and are computed with in other ways.
bool FamilyNames::has_config_json(const std::string& type) const {
  const Config found = json("config.json").peek("model_type");
  if (!found.is_scalar() || found.text() == type) return found.is_scalar();
  found.error(fmt::format(
      "there is no preset for the family '{}', whose arrays have the names of '{}'; write its "
      "layers out under `layers`, or remove config.json if it is such a model",
      found.text(), type));
}

std::string FamilyNames::section(const std::string& type, const std::string& keys,
                                 const std::string& more) const {
  std::string text = has_config_json(type) ? "  from_hf: " + quoted(folder_) + "\n"
                                           : "  type: " + type + "\n" + keys;
  text += more;
  std::vector<std::string> rules, globs;
  for (const auto& [from, to] : renames_) {
    rules.push_back(fmt::format("{{from: {}, to: {}}}", quoted(wrapper_ + from), quoted(to)));
  }
  if (!wrapper_.empty()) {
    rules.push_back(fmt::format("{{from: {}, to: \"*\"}}", quoted(wrapper_ + "*")));
  }
  for (const std::string& glob : skip_) globs.push_back(quoted(glob));
  if (rules.empty() && globs.empty()) return text;
  text += "  init_from:\n";
  if (!rules.empty()) text += fmt::format("    rename: [{}]\n", join(rules, ", "));
  if (!globs.empty()) text += fmt::format("    skip: [{}]\n", join(globs, ", "));
  return text;
}

std::string key_line(const char* name, int64_t value, const char* comment) {
  return fmt::format("  {}: {}{}\n", name, value, comment);
}

std::string heads_line(const char* name, int64_t features) {
  return key_line(name, features % 64 == 0 ? features / 64 : 1, kNotInFile);
}

std::string family_in_words(const char* family, int64_t layers, int64_t features) {
  return fmt::format("a {} of {} layers and {} features", family, layers, features);
}

std::optional<FoundModel> find_family(const StoredValues& stored, const std::string& folder) {
  const FamilyNames names(stored, folder);
  for (const auto find :
       {find_bert, find_distilbert, find_gpt2, find_llama, find_vit, find_cifar_resnet}) {
    if (auto found = find(names)) return found;
  }
  return std::nullopt;
}

}  // namespace lacuna
