#include "lacuna/framework/shrink/smaller_model.hpp"

#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace lacuna {
namespace {

class Writer {
 public:
  Writer(const Module& model, const ModelUnits& units, const KeptUnits& kept) : kept_(kept) {
    collect(model);
    for (const UnitGraph::Size& size : units.sizes) sizes_[size.path].push_back(&size);
  }

  Config list(const std::vector<ModelLayer>& layers) const {
    Config written = Config::list();
    for (const ModelLayer& layer : layers) written.push_back(written_layer(layer));
    return written;
  }

 private:
  // Layers that a shortcut would have, were it used, are not in the model.
  void collect(const Module& module) {
    built_.insert(module.path());
    for (const auto& [name, child] : module.children()) collect(*child);
  }

  Config written_layer(const ModelLayer& layer) const {
    switch (layer.kind) {
      case ModelLayer::Kind::Plain:
        return plain(layer);
      case ModelLayer::Kind::Sequential:
        return group(layer, "sequential");
      case ModelLayer::Kind::Parallel:
        return group(layer, "parallel");
      case ModelLayer::Kind::Residual:
        break;
    }
    Config residual = group(layer, "residual");
    if (!layer.shortcut.empty() && built_.contains(layer.shortcut.front().path)) {
      residual.set("shortcut", list(layer.shortcut));
      residual.set("when", "always");
    }
    return residual;
  }

  Config group(const ModelLayer& layer, const char* type) const {
    Config written = Config::map({{"type", type}, {"name", layer.name}});
    const Config trainable = layer.options.peek("trainable");
    if (!trainable.is_null()) written.set("trainable", trainable.clone());
    written.set("layers", list(layer.layers));
    return written;
  }

  Config plain(const ModelLayer& layer) const {
    Config written = Config::map({{"type", layer.type}, {"name", layer.name}});
    for (const auto& [key, value] : layer.options.entries()) {
      if (key != "type" && key != "name") written.set(key, value.clone());
    }
    const auto sizes = sizes_.find(layer.path);
    if (sizes == sizes_.end()) return written;
    for (const UnitGraph::Size* size : sizes->second) {
      if (!size->is_required && !written.has(size->key)) continue;
      if (layer.options.peek("tied_to").is_scalar() && !written.has(size->key)) continue;
      written.set(size->key, static_cast<int64_t>(kept_indices(size->units, kept_).size()));
    }
    return written;
  }

  const KeptUnits& kept_;
  std::set<std::string> built_;
  std::map<std::string, std::vector<const UnitGraph::Size*>> sizes_;
};

}  // namespace

Config smaller_layers(const ModelLayers& layers, const Module& model, const ModelUnits& units,
                      const KeptUnits& kept) {
  return Writer(model, units, kept).list(layers.layers);
}

}  // namespace lacuna
