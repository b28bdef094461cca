#include "lacuna/framework/report/differences.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <map>
#include <numeric>
#include <set>
#include <string_view>
#include <utility>

#include "lacuna/framework/records/json_text.hpp"
#include "lacuna/framework/report/run_names.hpp"

namespace lacuna {
namespace {

using FlatConfig = std::map<std::string, std::string>;

// A path counts by its last name: where files lie is another matter than what is in them.
std::string meaning_of(const Config& value) {
  const std::string text = value.to_json();
  if (!text.starts_with("\"/") || text.size() < 4) return text;
  std::string path = value.text();
  while (path.size() > 1 && path.back() == '/') path.pop_back();
  return Config(path.substr(path.rfind('/') + 1)).to_json();
}

void flatten(const Config& node, const std::string& path, FlatConfig& to) {
  const auto below = [&](const std::string& key) { return path.empty() ? key : path + "." + key; };
  if (node.is_map() && !node.entries().empty()) {
    for (const auto& [key, child] : node.entries()) flatten(child, below(key), to);
  } else if (node.is_list() && !node.items().empty()) {
    const std::vector<Config> items = node.items();
    for (size_t i = 0; i < items.size(); ++i) flatten(items[i], below(std::to_string(i)), to);
  } else if (!path.empty() && !node.is_null()) {
    to[path] = meaning_of(node);
  }
}

// Under a key of its own what another key had before: "changed.optimizer.lr" is "0.3 until step
// 45".
void flatten_changes(const std::vector<ConfigChange>& changes, FlatConfig& to) {
  std::map<std::string, std::string> words;
  for (const ConfigChange& change : changes) {
    std::string& text = words["changed." + change.key];
    text += fmt::format("{}{} until step {}", text.empty() ? "" : ", ",
                        value_in_words(change.before), change.step);
  }
  for (const auto& [key, text] : words) to[key] = Config(text).to_json();
}

// Layers that are a name alone, as maps; `relu` and {type: relu} are the same.
Config with_types(const Config& layers) {
  Config list = Config::list();
  for (const Config& layer : layers.items()) {
    if (layer.is_scalar()) {
      list.push_back(Config::map({{"type", layer.text()}}));
    } else {
      list.push_back(layer.clone());
    }
  }
  return list;
}

// A model may be its layers alone, or a map of them and of where weights come from: the former is
// the latter without an origin. A loss may be its type alone.
Config in_one_form(const Config& config) {
  Config copy = config.clone();
  if (!copy.is_map()) return copy;
  if (copy.get("model").is_list()) {
    copy.set("model", Config::map({{"layers", copy.get("model")}}));
  }
  const Config model = copy.get("model");
  if (model.is_map() && model.get("layers").is_list()) {
    copy.set_path("model.layers", with_types(model.get("layers")));
  }
  if (copy.get("loss").is_scalar()) {
    copy.set("loss", Config::map({{"type", copy.get("loss").text()}}));
  }
  return copy;
}

bool is_below(const std::string& key, std::string_view section) {
  return key.starts_with(section) && (key.size() == section.size() || key[section.size()] == '.');
}

// Whether a key can change what comes of a run: where it is, what it logs and keeps, what was
// measured on the machine and what layers are called cannot.
bool has_meaning(const std::string& key) {
  constexpr std::array kWithout{"run_dir",
                                "csr_up_to",
                                "convolution_algorithms",
                                "train.log_every",
                                "train.tensorboard",
                                "train.trace_autograd",
                                "train.prefetch",
                                "train.eval_batch_size",
                                "train.checkpoint.every",
                                "train.checkpoint.keep_last"};
  if (std::ranges::any_of(kWithout, [&](const char* section) { return is_below(key, section); })) {
    return false;
  }
  // What a layer is given follows from the one before it.
  constexpr std::array kOfLayers{".name", ".in_features", ".in_channels"};
  return !is_below(key, "model") ||
         std::ranges::none_of(kOfLayers, [&](const char* end) { return key.ends_with(end); });
}

bool is_seed(const std::string& key) { return key == "train.seed" || key == "train.threads"; }

// "lr" of "optimizer.lr", "param_filter.0" of "sparsity.param_filter.0".
std::string last_part(const std::string& key) {
  size_t dot = key.rfind('.');
  while (dot != std::string::npos && dot > 0 && dot + 1 < key.size() &&
         std::isdigit(static_cast<unsigned char>(key[dot + 1])) != 0) {
    dot = key.rfind('.', dot - 1);
  }
  return key.substr(dot + 1);
}

// Of each group of equal settings what the labels of its runs have in common, where that is known
// and different for each.
void take_common_labels(const std::vector<RunData>& runs, std::vector<std::string>& settings) {
  std::map<std::string, std::vector<std::string>> groups;
  for (size_t i = 0; i < runs.size(); ++i) groups[settings[i]].push_back(runs[i].label);
  std::map<std::string, std::string> names;
  std::set<std::string> different;
  for (const auto& [setting, labels] : groups) {
    names[setting] = common_label(labels);
    if (names[setting].empty() || !different.insert(names[setting]).second) return;
  }
  if (groups.size() < 2) return;
  for (std::string& setting : settings) setting = names[setting];
}

}  // namespace

std::vector<Difference> config_differences(const std::vector<RunData>& runs) {
  std::vector<size_t> all(runs.size());
  std::iota(all.begin(), all.end(), size_t{0});
  return config_differences(runs, all);
}

std::vector<Difference> config_differences(const std::vector<RunData>& runs,
                                           const std::vector<size_t>& places) {
  std::vector<FlatConfig> configs;
  std::set<std::string> keys;
  for (const size_t place : places) {
    const RunData& run = runs[place];
    FlatConfig& flat = configs.emplace_back();
    flatten(in_one_form(run.full_config.is_null() ? run.config : run.full_config), "", flat);
    flatten_changes(run.changes, flat);
    for (const auto& [key, value] : flat) keys.insert(key);
  }
  std::vector<Difference> differences;
  for (const std::string& key : keys) {
    if (!has_meaning(key)) continue;
    Difference difference{key, {}};
    bool is_chosen = false;
    for (size_t i = 0; i < places.size(); ++i) {
      const auto value = configs[i].find(key);
      const bool is_there = value != configs[i].end();
      difference.values.push_back(is_there ? value->second : "");
      is_chosen = is_chosen || (is_there && !runs[places[i]].defaults.contains(key));
    }
    const bool differs = std::ranges::any_of(
        difference.values, [&](const auto& value) { return value != difference.values.front(); });
    if (is_chosen && differs) differences.push_back(std::move(difference));
  }
  return differences;
}

std::string readable_value(const std::string& json) {
  if (json.empty()) return "-";
  const auto value = parse_json(json);
  return value && value->is_scalar() ? value->text() : json;
}

std::vector<std::string> seed_labels(const std::vector<RunData>& runs) {
  std::vector<Difference> differences = config_differences(runs);
  std::erase_if(differences, [](const Difference& d) { return is_seed(d.key); });
  std::map<std::string, int> uses;  // of the last parts of keys
  for (const Difference& difference : differences) ++uses[last_part(difference.key)];
  std::vector<std::string> labels(runs.size());
  for (const auto& [key, values] : differences) {
    const std::string name = uses[last_part(key)] == 1 ? last_part(key) : key;
    for (size_t i = 0; i < runs.size(); ++i) {
      if (values[i].empty()) continue;
      labels[i] += (labels[i].empty() ? "" : ", ") + name + "=" + readable_value(values[i]);
    }
  }
  for (std::string& label : labels) {
    if (label.empty()) label = "as configured";
  }
  take_common_labels(runs, labels);
  return labels;
}

void set_apart(const std::vector<RunData>& runs, std::vector<std::string>& labels) {
  std::vector<std::string> seeds(runs.size());
  for (const auto& [key, values] : config_differences(runs)) {
    if (key == "train.seed") seeds = values;
  }
  std::set<std::pair<std::string, std::string>> known;
  for (size_t i = 0; i < runs.size(); ++i) {
    const bool is_over = runs[i].state != "running" && runs[i].state != "unfinished";
    if (runs[i].is_int8) labels[i] += ", int8";
    if (!is_over) labels[i] += ", " + runs[i].state;
    const std::string label = labels[i] + (is_over ? ", same seed" : "");
    for (int n = 2; !known.emplace(labels[i], is_over ? seeds[i] : "").second; ++n) {
      labels[i] = fmt::format("{} ({})", label, n);
    }
  }
}

}  // namespace lacuna
