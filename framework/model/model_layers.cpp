#include "lacuna/framework/model/model_layers.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <map>
#include <optional>
#include <utility>

#include "lacuna/framework/config/names.h"
#include "lacuna/framework/core/error.h"
#include "lacuna/framework/model/qkv.hpp"
#include "lacuna/framework/model/shared_keys.hpp"
#include "lacuna/framework/model/templates.hpp"
#include "lacuna/framework/nn/layer_registry.h"

namespace lacuna {
namespace {

constexpr int64_t kMostLayers = 10'000;
constexpr int kDeepestGroup = 100;

// A layer that is given by its type alone has no options, but a path and a position all the same.
Config options_of(const Config& layer) {
  if (layer.is_map()) return layer;
  Config place = Config::map();
  place.set(layer.path(), Config::map());
  Config options = place.at(layer.path());
  options.set_position(layer.position());
  return options;
}

std::string type_of(const Config& layer) {
  if (layer.is_scalar()) return layer.as<std::string>();
  if (!layer.is_map()) layer.fail("a layer: its type, or a map with `type`");
  return layer.required<std::string>("type");
}

ModelLayer::Kind kind_of(const std::string& type) {
  if (type == "sequential") return ModelLayer::Kind::Sequential;
  if (type == "residual") return ModelLayer::Kind::Residual;
  if (type == "parallel" || type == "qkv") return ModelLayer::Kind::Parallel;
  return ModelLayer::Kind::Plain;
}

// What is registered under a name; nothing under that of a group.
const LayerType& type_named(const std::string& type) {
  static const LayerType unknown;
  const auto found = layer_registry().entries().find(type);
  return found == layer_registry().entries().end() ? unknown : found->second.make;
}

// Where names are counted and must differ: groups that add no level to paths share one.
struct Level {
  std::string prefix;
  std::map<std::string, int> counts = {};
};

class Expander {
 public:
  Expander(std::vector<Template> templates, SharedKeys shared, ModelContext context)
      : templates_(std::move(templates)), shared_(std::move(shared)), context_(context) {}

  std::vector<ModelLayer> expand_outermost(const Config& layers) {
    Level level{""};
    std::vector<ModelLayer> expanded;
    if (!layers.is_list()) layers.fail("a list of layers");
    // Numbers may be written as expressions outside of templates, too.
    const std::vector<Config> written = layers.items();
    const std::vector<Config> substituted = substitute(layers, {}).items();
    for (size_t i = 0; i < written.size(); ++i) {
      if (!mentions_arguments(written[i])) {
        add_layer(written[i], level, expanded);
        continue;
      }
      add_layer(copy_of(written[i], substituted[i]), level, expanded);
    }
    if (expanded.empty()) layers.fail("at least one layer");
    shared_.require_use();
    fill_in_classes(expanded.back());
    for (size_t i = 0; i < written.size(); ++i) {
      if (mentions_arguments(written[i])) write_back(substituted[i], written[i]);
    }
    return expanded;
  }

  std::vector<Config> take_copies() { return std::move(copies_); }
  std::vector<std::pair<std::string, std::string>> take_moved_keys() {
    return std::move(moved_keys_);
  }

 private:
  // The copy stands in for what is written from now on.
  Config copy_of(const Config& written, Config copy) {
    written.mark_read();
    copies_.push_back(copy);
    return copy;
  }

  // What the context has filled into a copy belongs to what is written, too.
  static void write_back(const Config& copy, Config written) {
    if (copy.is_list() && written.is_list()) {
      const std::vector<Config> to = written.items();
      for (size_t i = 0; i < std::min(copy.children().size(), to.size()); ++i) {
        write_back(copy.children()[i].second, to[i]);
      }
    }
    if (!copy.is_map() || !written.is_map()) return;
    for (const auto& [key, value] : copy.children()) {
      if (written.has(key)) {
        write_back(value, written.get(key));
      } else {
        written.set(key, value.clone());
      }
    }
    written.mark_read();
  }

  std::vector<ModelLayer> expand_list(const Config& layers, Level& level) {
    if (!layers.is_list()) layers.fail("a list of layers");
    if (++depth_ > kDeepestGroup) {
      layers.error(fmt::format("groups of layers nest deeper than {}", kDeepestGroup));
    }
    std::vector<ModelLayer> expanded;
    for (const Config& layer : layers.items()) add_layer(layer, level, expanded);
    if (expanded.empty()) layers.fail("at least one layer");
    --depth_;
    return expanded;
  }

  // A layer of a list, or its copies.
  void add_layer(const Config& layer, Level& level, std::vector<ModelLayer>& into) {
    const std::string type = type_of(layer);
    std::string name = fmt::format("{}{}", type, ++level.counts[type]);
    if (!layer.is_map()) return add_one(layer, type, name, level, into);
    if (layer.has("name")) require_layer_name(layer.at("name"), "a layer's");
    name = layer.get<std::string>("name", name);
    if (!layer.has("repeat")) {
      if (layer.has("first")) {
        layer.at("first").error("`first` is for the first of several copies, which `repeat` makes");
      }
      return add_one(layer, type, name, level, into);
    }
    if (kind_of(type) == ModelLayer::Kind::Residual ||
        kind_of(type) == ModelLayer::Kind::Parallel) {
      layer.at("repeat").error(fmt::format(
          "a {0} adds no level to paths, so its copies would have the same names; repeat a "
          "sequential around it: {{type: sequential, name: …, repeat: …, layers: [{{type: {0}, "
          "…}}]}}",
          type));
    }
    const auto count = require_at_least(layer, "repeat", layer.required<int64_t>("repeat"), 1);
    if (count > kMostLayers) fail_too_many(layer.at("repeat"));
    ++copying_;
    for (int64_t i = 0; i < count; ++i) {
      const Config copy = copy_of(layer, repetition(layer, i == 0));
      add_one(copy, type, fmt::format("{}.{}", name, i), level, into);
    }
    --copying_;
  }

  Config repetition(const Config& layer, bool is_first) {
    Config copy = layer.clone();
    copy.erase("repeat");
    copy.erase("first");
    const Config first = layer.get("first");
    if (first.is_null()) return copy;
    if (!first.is_map()) first.fail("a map of the differences in the first copy");
    for (const auto& [key, value] : first.entries()) {
      if (is_key_of_every_layer(key)) value.error("`first` cannot change '" + key + "'");
      if (!is_first) continue;
      copy.set(key, value.clone());
      note_moved(value, first.path().size(), copy.path());
    }
    return copy;
  }

  // A value of the map whose path is so long, moved into another one.
  void note_moved(const Config& value, size_t length, const std::string& into) {
    Config place;
    place.set_position(value.position());
    const std::string position = place.where(), rest = value.path().substr(length);
    const std::string path = into.empty() ? rest.substr(1) : into + rest;
    moved_keys_.emplace_back(position + ": " + path, value.where());
    for (const auto& [key, below] : value.children()) note_moved(below, length, into);
  }

  void add_one(const Config& node, const std::string& type, const std::string& name, Level& level,
               std::vector<ModelLayer>& into) {
    ModelLayer layer{.kind = kind_of(type),
                     .type = type,
                     .name = name,
                     .path = level.prefix + name,
                     .node = node,
                     .options = options_of(node),
                     .is_copy = copying_ > 0 || !node.is_map()};
    for (const char* key : {"type", "name"}) layer.options.get(key);  // read, in a copy too
    require_free(layer);
    if (++count_ > kMostLayers) fail_too_many(node);
    const Template* definition = find_template(templates_, type);
    const LayerType& known = type_named(type);
    if (definition != nullptr) {
      fill_in(*definition, layer);
    } else if (layer.kind == ModelLayer::Kind::Sequential) {
      Level inner{layer.path + "."};
      layer.layers = expand_list(layer.options.at("layers"), inner);
    } else if (type == "qkv") {
      ++copying_;
      for (const Config& linear : linear_layers_of_qkv(node)) {
        add_layer(copy_of(node, linear), level, layer.layers);
      }
      --copying_;
    } else if (layer.kind != ModelLayer::Kind::Plain) {
      layer.layers = expand_list(layer.options.at("layers"), level);
      if (layer.kind == ModelLayer::Kind::Residual) add_shortcut(layer, level);
    } else if (!known.vocabulary_key.empty() && !layer.is_copy && context_.vocabulary_size > 0) {
      layer.options.get(known.vocabulary_key, context_.vocabulary_size);
    }
    shared_.give_to(layer, known);
    into.push_back(std::move(layer));
  }

  // The last layer of all, if it does not state its number of outputs.
  void fill_in_classes(const ModelLayer& last) const {
    if (last.kind == ModelLayer::Kind::Sequential) return fill_in_classes(last.layers.back());
    const std::string& key = type_named(last.type).outputs_key;
    const bool is_free = !key.empty() && !last.is_copy && !last.options.has("tied_to");
    if (is_free && context_.num_classes > 0) last.options.get(key, context_.num_classes);
  }

  void add_shortcut(ModelLayer& residual, Level& level) {
    const Config shortcut = residual.options.get("shortcut");
    if (shortcut.is_null()) {
      const Config when = residual.options.get("when");
      if (!when.is_null()) when.error("`when` sets when the `shortcut` is used, but there is none");
      return;
    }
    const auto when = residual.options.get<std::string>("when", "differs");
    if (when != "differs" && when != "always") {
      residual.options.at("when").fail("differs (only where the identity does not fit) or always");
    }
    residual.always_shortcut = when == "always";
    if (shortcut.is_list()) {
      residual.shortcut = expand_list(shortcut, level);
    } else {
      add_layer(shortcut, level, residual.shortcut);
    }
  }

  void fill_in(const Template& definition, ModelLayer& layer) {
    std::string chain;
    bool names_itself = false;
    for (const std::string& open : open_templates_) {
      names_itself |= open == definition.name;
      if (names_itself) chain += open + " → ";
    }
    if (names_itself) {
      layer.node.error(fmt::format("the template '{}' contains itself: {}{}", definition.name,
                                   chain, definition.name));
    }
    const Scope scope = bind_arguments(definition, layer.node);
    layer.kind = ModelLayer::Kind::Sequential;
    open_templates_.push_back(definition.name);
    ++copying_;
    try {
      Level inner{layer.path + "."};
      layer.layers =
          expand_list(copy_of(definition.layers, substitute(definition.layers, scope)), inner);
    } catch (const ConfigError& error) {
      throw ConfigError(fmt::format("{}; within {}", error.what(), layer.described()));
    }
    --copying_;
    open_templates_.pop_back();
  }

  [[noreturn]] static void fail_too_many(const Config& place) {
    place.error(
        fmt::format("the model has more than {} layers; too many repetitions?", kMostLayers));
  }

  void require_free(const ModelLayer& layer) {
    const auto [place, is_new] = taken_.emplace(layer.path, layer.node.position().text());
    if (is_new) return;
    layer.node.error(
        fmt::format("two layers are named '{}'; give one of them another `name`{}", layer.path,
                    place->second.empty() ? "" : " (the other: " + place->second + ")"));
  }

  std::vector<Template> templates_;
  SharedKeys shared_;
  ModelContext context_;
  std::vector<std::string> open_templates_;   // that are being filled in, outermost first
  std::map<std::string, std::string> taken_;  // path → position
  std::vector<Config> copies_;
  std::vector<std::pair<std::string, std::string>> moved_keys_;
  int64_t count_ = 0;
  int depth_ = 0;
  int copying_ = 0;  // templates and repetitions that are open
};

}  // namespace

std::string ModelLayer::described() const {
  const std::string at = node.position().text();
  return fmt::format("layer '{}' ({}){}", path, type, at.empty() ? "" : " at " + at);
}

std::string ModelLayers::as_written(const std::string& message) const {
  for (const auto& [moved, written] : moved_keys) {
    if (message.starts_with(moved + ":")) return written + message.substr(moved.size());
  }
  return message;
}

namespace {

// What the last layer leaves out is written where it stands, so it becomes a map if it was given by
// its type alone.
void write_last_as_map(const Config& layers) {
  if (!layers.is_list() || layers.children().empty()) return;
  const auto [index, last] = layers.children().back();
  if (last.is_map() && last.peek("type").text() == "sequential") {
    return write_last_as_map(last.peek("layers"));
  }
  if (!last.is_scalar() || type_named(last.text()).outputs_key.empty()) return;
  Config map = Config::map({{"type", last.clone()}});
  map.set_position(last.position());
  Config(layers).set_path(index, map);
}

}  // namespace

ModelLayers expand_model(const Config& model, const ModelContext& context) {
  const bool is_list = model.is_list();
  if (!is_list && !model.is_map()) model.fail("a list of layers, or a map with `layers`");
  const Config layers = is_list ? model : model.at("layers");
  const Config define = is_list ? Config() : model.get("define");
  if (context.num_classes > 0) write_last_as_map(layers);
  std::vector<Template> templates = read_templates(define);
  for (const Template& definition : templates) {
    if (kind_of(definition.name) != ModelLayer::Kind::Plain) {
      definition.node.error("there is already a layer named '" + definition.name + "'");
    }
  }
  Expander expander(std::move(templates), SharedKeys(model), context);
  std::vector<ModelLayer> expanded;
  try {
    expanded = expander.expand_outermost(layers);
  } catch (const ConfigError& error) {
    const ModelLayers begun{
        .node = {}, .define = {}, .layers = {}, .moved_keys = expander.take_moved_keys()};
    throw ConfigError(begun.as_written(error.what()));
  }
  return {.node = layers,
          .define = define,
          .layers = std::move(expanded),
          .copies = expander.take_copies(),
          .moved_keys = expander.take_moved_keys()};
}

}  // namespace lacuna
