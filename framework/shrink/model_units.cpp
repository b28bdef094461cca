#include "lacuna/framework/shrink/model_units.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <map>
#include <typeinfo>
#include <utility>

#include "lacuna/framework/nn/layer_registry.h"
#include "lacuna/framework/nn/sequential.h"
#include "lacuna/layers/parallel.h"
#include "lacuna/layers/residual.h"

namespace lacuna {
namespace {

class UnitWalk {
 public:
  explicit UnitWalk(UnitGraph& graph) : graph_(graph) {}

  UnitAxis follow(const Module& layer, const UnitAxis& input, const Shape& example) {
    if (layer.has_input_transforms() || layer.has_output_transforms()) {
      return units_fixed(
          "has sparsified or quantized activations (`sparsifiers`, or `quantize` with qat)")(
          graph_, layer, input, example);
    }
    if (typeid(layer) == typeid(Sequential)) {
      return chain(static_cast<const Sequential&>(layer).chain(), input, example);
    }
    if (typeid(layer) == typeid(Residual)) {
      return residual(static_cast<const Residual&>(layer), input, example);
    }
    if (typeid(layer) == typeid(Parallel)) {
      return parallel(static_cast<const Parallel&>(layer), input, example);
    }
    const auto& types = std::as_const(layer_registry()).entries();
    const auto type = types.find(layer.type());
    if (type == types.end() || type->second.make.units == nullptr) {
      return units_fixed("does not declare its units")(graph_, layer, input, example);
    }
    return type->second.make.units(graph_, layer, input, example);
  }

 private:
  UnitAxis chain(const Chain& layers, UnitAxis axis, Shape example) {
    for (const Module* layer : layers.modules()) {
      axis = follow(*layer, axis, example);
      example = layer->output_shape(example);
    }
    return axis;
  }

  UnitAxis residual(const Residual& layer, const UnitAxis& input, const Shape& example) {
    const UnitAxis body = chain(layer.layers(), input, example);
    const UnitAxis shortcut = chain(layer.shortcut(), input, example);
    if (body.dim == shortcut.dim && body.units.size() == shortcut.units.size()) {
      graph_.unite(body.units, shortcut.units);
    } else {
      const std::string why = unit_reason(layer, "adds units of different dimensions");
      graph_.fix(body.units, why);
      graph_.fix(shortcut.units, why);
    }
    return body;
  }

  // Images by channels, all else by features.
  UnitAxis parallel(const Parallel& layer, const UnitAxis& input, const Shape& example) {
    const int rank = layer.output_shape(example).rank();
    const int joined = rank == 3 ? 0 : rank - 1;
    UnitAxis all;
    for (const auto& [name, child] : layer.children()) {
      const UnitAxis branch = follow(*child, input, example);
      if (all.units.empty()) {
        all = branch;
      } else if (branch.dim == joined && all.dim == joined) {
        all.units.insert(all.units.end(), branch.units.begin(), branch.units.end());
      } else if (branch.dim == all.dim && branch.units.size() == all.units.size()) {
        graph_.unite(all.units, branch.units);
      } else {
        const std::string why = unit_reason(layer, "joins units of different dimensions");
        graph_.fix(all.units, why);
        graph_.fix(branch.units, why);
      }
    }
    return all;
  }

  UnitGraph& graph_;
};

int unit_dimension(const Shape& example) { return example.rank() == 3 ? 0 : example.rank() - 1; }

// Layers that give a common unit are of one group.
std::vector<UnitGroup> groups_of(const ModelUnits& units, const std::vector<UnitGraph::Made>& made,
                                 std::vector<int32_t>& group_of) {
  std::vector<int32_t> joined(made.size());  // the first layer of the group
  group_of.assign(static_cast<size_t>(units.count), -1);
  const auto first_of = [&](int32_t layer) {
    while (joined[static_cast<size_t>(layer)] != layer) layer = joined[static_cast<size_t>(layer)];
    return layer;
  };
  for (size_t i = 0; i < made.size(); ++i) {
    joined[i] = static_cast<int32_t>(i);
    for (const int32_t unit : made[i].units) {
      int32_t& group = group_of[static_cast<size_t>(unit)];
      if (group < 0) group = static_cast<int32_t>(i);
      const int32_t a = first_of(group), b = first_of(static_cast<int32_t>(i));
      joined[static_cast<size_t>(std::max(a, b))] = std::min(a, b);
    }
  }
  std::map<int32_t, int32_t> numbers;  // of the groups, in their order
  std::vector<UnitGroup> groups;
  for (size_t i = 0; i < made.size(); ++i) {
    const int32_t first = first_of(static_cast<int32_t>(i));
    const auto number = numbers.emplace(first, static_cast<int32_t>(groups.size()));
    if (number.second) groups.emplace_back();
    std::vector<std::string>& layers = groups[static_cast<size_t>(number.first->second)].layers;
    if (std::ranges::find(layers, made[i].path) == layers.end()) layers.push_back(made[i].path);
  }
  for (int32_t unit = 0; unit < units.count; ++unit) {
    int32_t& group = group_of[static_cast<size_t>(unit)];
    if (group < 0) continue;
    group = numbers.at(first_of(group));
    UnitGroup& all = groups[static_cast<size_t>(group)];
    const std::string& why = units.why_fixed[static_cast<size_t>(unit)];
    const bool was_fixed = all.units.empty() || !all.why_fixed.empty();
    all.units.push_back(unit);
    all.why_fixed = was_fixed ? why : "";
  }
  return groups;
}

}  // namespace

std::string UnitGroup::name() const {
  if (layers.empty()) return "";
  if (layers.size() == 1) return layers.front();
  return fmt::format("{} and {} more", layers.front(), layers.size() - 1);
}

ModelUnits::ModelUnits(const Module& model, const Shape& example) {
  UnitGraph graph;
  const int dim = unit_dimension(example);
  const UnitAxis input{dim, graph.make_fixed(example[dim], "it is an input of the model")};
  const UnitAxis output = UnitWalk(graph).follow(model, input, example);
  graph.fix(output.units, "it is an output of the model");

  std::vector<int32_t> number(static_cast<size_t>(graph.count()), -1);
  for (int32_t unit = 0; unit < graph.count(); ++unit) {
    if (graph.root(unit) != unit) continue;
    number[static_cast<size_t>(unit)] = static_cast<int32_t>(count++);
    why_fixed.push_back(graph.why_fixed(unit));
  }
  const auto renumber = [&](auto& entries) {
    for (auto& entry : entries) {
      for (int32_t& unit : entry.units) unit = number[static_cast<size_t>(graph.root(unit))];
    }
  };
  std::vector<UnitGraph::Made> made = graph.made();
  slices = graph.slices();
  buffers = graph.buffers();
  sizes = graph.sizes();
  renumber(made);
  renumber(slices);
  renumber(buffers);
  renumber(sizes);
  groups = groups_of(*this, made, group_of);
}

std::vector<int64_t> kept_indices(const UnitGraph::Units& units, const KeptUnits& kept) {
  std::vector<int64_t> indices;
  for (size_t i = 0; i < units.size(); ++i) {
    if (kept[static_cast<size_t>(units[i])] != 0) indices.push_back(static_cast<int64_t>(i));
  }
  return indices;
}

}  // namespace lacuna
