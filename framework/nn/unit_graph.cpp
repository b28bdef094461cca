#include "lacuna/framework/nn/unit_graph.h"

#include <fmt/core.h>

#include <numeric>
#include <utility>

namespace lacuna {

UnitGraph::Units UnitGraph::add(int64_t count, const std::string& why) {
  Units units(static_cast<size_t>(count));
  std::iota(units.begin(), units.end(), static_cast<int32_t>(parent_.size()));
  parent_.insert(parent_.end(), units.begin(), units.end());
  why_.resize(parent_.size(), why);
  return units;
}

UnitGraph::Units UnitGraph::make(const Module& layer, int64_t count) {
  Units units = add(count, "");
  made_.push_back({layer.path(), units});
  return units;
}

UnitGraph::Units UnitGraph::make_fixed(int64_t count, const std::string& why) {
  return add(count, why);
}

int32_t UnitGraph::root(int32_t unit) const {
  int32_t at = unit;
  while (parent_[static_cast<size_t>(at)] != at) at = parent_[static_cast<size_t>(at)];
  while (parent_[static_cast<size_t>(unit)] != at) {
    unit = std::exchange(parent_[static_cast<size_t>(unit)], at);
  }
  return at;
}

void UnitGraph::fix(const Units& units, const std::string& why) {
  for (const int32_t unit : units) {
    std::string& reason = why_[static_cast<size_t>(root(unit))];
    if (reason.empty()) reason = why;
  }
}

void UnitGraph::unite(const Units& a, const Units& b) {
  for (size_t i = 0; i < a.size(); ++i) {
    int32_t first = root(a[i]), second = root(b[i]);
    if (first == second) continue;
    if (second < first) std::swap(first, second);  // the order of the layers
    parent_[static_cast<size_t>(second)] = first;
    std::string& reason = why_[static_cast<size_t>(first)];
    if (reason.empty()) reason = why_[static_cast<size_t>(second)];
  }
}

UnitGraph::Units UnitGraph::along(const Module& layer, const UnitAxis& input, const Shape& example,
                                  int dim) {
  if (input.dim == dim && static_cast<int64_t>(input.units.size()) == example[dim]) {
    return input.units;
  }
  const std::string why = unit_reason(layer, "works along a different dimension than the units");
  fix(input.units, why);
  return make_fixed(example[dim], why);
}

void UnitGraph::add_slice(const ParameterPtr& parameter, int dim, bool is_input,
                          const Units& units) {
  if (parameter == nullptr) return;
  for (const Slice& slice : slices_) {
    if (slice.parameter != parameter || slice.dim != dim) continue;
    return unite(slice.units, units);
  }
  slices_.push_back({parameter, dim, is_input, units});
}

void UnitGraph::gives(const ParameterPtr& parameter, int dim, const Units& units) {
  add_slice(parameter, dim, false, units);
}

void UnitGraph::takes(const ParameterPtr& parameter, int dim, const Units& units) {
  add_slice(parameter, dim, true, units);
}

void UnitGraph::add_buffer(const Module& layer, std::string_view name, const Units& units) {
  const std::string& path = layer.path();
  buffers_.push_back({(path.empty() ? "" : path + ".") + std::string(name), units});
}

void UnitGraph::counts(const Module& layer, std::string key, const Units& units) {
  sizes_.push_back({layer.path(), std::move(key), false, units});
}

void UnitGraph::sets(const Module& layer, std::string key, const Units& units) {
  sizes_.push_back({layer.path(), std::move(key), true, units});
}

std::string unit_reason(const Module& layer, const std::string& why) {
  return fmt::format("layer '{}' ({}) {}", layer.path(), layer.type(), why);
}

UnitForm units_kept() {
  return [](UnitGraph&, const Module&, const UnitAxis& input, const Shape&) { return input; };
}

UnitForm units_of_features() {
  return [](UnitGraph& graph, const Module& layer, const UnitAxis& input, const Shape& example) {
    return UnitAxis{layer.output_shape(example).rank() - 1,
                    graph.along(layer, input, example, example.rank() - 1)};
  };
}

UnitForm units_fixed(std::string why) {
  return [why = std::move(why)](UnitGraph& graph, const Module& layer, const UnitAxis& input,
                                const Shape& example) {
    const std::string reason = unit_reason(layer, why);
    graph.fix(input.units, reason);
    const Shape output = layer.output_shape(example);
    const int dim = output.rank() - 1;
    if (output == example) return input;
    if (layer.parameters().empty()) return UnitAxis{dim, graph.make_fixed(output[dim], reason)};
    const UnitGraph::Units units = graph.make(layer, output[dim]);  // a group that has the reason
    graph.fix(units, reason);
    return UnitAxis{dim, units};
  };
}

}  // namespace lacuna
