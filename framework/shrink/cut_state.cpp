#include "lacuna/framework/shrink/cut_state.hpp"

#include <numeric>
#include <set>
#include <string>
#include <utility>

namespace lacuna {
namespace {

// A saved state in the parameter's shape: of compressed weights the nonzeros alone are saved.
Tensor in_full(const Parameter& parameter, const Tensor& saved) {
  if (saved.shape() == parameter.shape()) return saved;
  const ByteArray mask = parameter.mask();
  Tensor full = Tensor::zeros(parameter.shape());
  float* values = full.mutable_data();
  size_t next = 0;
  for (size_t i = 0; i < mask.values.size(); ++i) {
    if (mask.values[i] != 0) values[i] = saved.data()[next++];
  }
  return full;
}

// The state of modules other than parameters.
StateDict without_parameters(const Module& model) {
  std::set<std::string> names;
  for (const ParameterPtr& parameter : model.parameters()) {
    names.insert(parameter->name());
    names.insert(parameter->name() + "_mask");
  }
  StateDict rest;
  const StateDict all = model.state_dict();
  for (const auto& [key, value] : all.values()) {
    const size_t slash = key.rfind('/');
    const bool is_parameter =
        names.contains(key) || (slash != std::string::npos && names.contains(key.substr(0, slash)));
    if (!is_parameter) rest.set(key, value);
  }
  return rest;
}

}  // namespace

ParameterCuts::ParameterCuts(const ModelUnits& units, const KeptUnits& kept) {
  for (const UnitGraph::Slice& slice : units.slices) {
    dimensions_[slice.parameter->name()][slice.dim] = kept_indices(slice.units, kept);
  }
}

Shape ParameterCuts::shape_of(const Parameter& parameter) const {
  std::vector<int64_t> sizes(parameter.shape().sizes().begin(), parameter.shape().sizes().end());
  if (const auto found = dimensions_.find(parameter.name()); found != dimensions_.end()) {
    for (const auto& [dim, indices] : found->second) {
      sizes[static_cast<size_t>(dim)] = static_cast<int64_t>(indices.size());
    }
  }
  return Shape(std::span<const int64_t>(sizes));
}

// Flat indices that stay, ascending.
std::vector<int64_t> ParameterCuts::positions(const Parameter& parameter) const {
  const auto found = dimensions_.find(parameter.name());
  std::vector<int64_t> flat{0};
  for (int dim = 0; dim < parameter.shape().rank(); ++dim) {
    std::vector<int64_t> indices(static_cast<size_t>(parameter.shape()[dim]));
    std::iota(indices.begin(), indices.end(), 0);
    if (found != dimensions_.end()) {
      if (const auto cut = found->second.find(dim); cut != found->second.end()) {
        indices = cut->second;
      }
    }
    std::vector<int64_t> next;
    next.reserve(flat.size() * indices.size());
    for (const int64_t outer : flat) {
      for (const int64_t index : indices) next.push_back(outer * parameter.shape()[dim] + index);
    }
    flat = std::move(next);
  }
  return flat;
}

Tensor ParameterCuts::cut(const Parameter& parameter, const Tensor& values) const {
  Tensor smaller = Tensor::empty(shape_of(parameter));
  float* out = smaller.mutable_data();
  for (const int64_t at : positions(parameter)) *out++ = values.data()[at];
  return smaller;
}

ByteArray ParameterCuts::cut(const Parameter& parameter, const ByteArray& mask) const {
  ByteArray smaller{shape_of(parameter), {}};
  for (const int64_t at : positions(parameter)) {
    smaller.values.push_back(mask.values[static_cast<size_t>(at)]);
  }
  return smaller;
}

int64_t ParameterCuts::nonzeros(const Parameter& parameter) const {
  if (parameter.pattern()->is_dense()) return shape_of(parameter).numel();
  const ByteArray mask = cut(parameter, parameter.mask());
  return std::accumulate(mask.values.begin(), mask.values.end(), int64_t{0});
}

bool ParameterCuts::fills(const Parameter& parameter) const {
  return parameter.pattern()->nnz() < parameter.numel() &&
         nonzeros(parameter) == shape_of(parameter).numel();
}

StateDict cut_model_state(Module& model, const ModelUnits& units, const KeptUnits& kept) {
  const ParameterCuts cuts(units, kept);
  StateDict state = without_parameters(model);
  for (const ParameterPtr& parameter : model.parameters()) {
    state.set(parameter->name(), cuts.cut(*parameter, parameter->to_dense()));
    if (parameter->pattern()->is_dense() || cuts.fills(*parameter)) continue;
    state.set(parameter->name() + "_mask", cuts.cut(*parameter, parameter->mask()));
  }
  std::map<std::string, const UnitGraph::Units*> cut_buffers;
  for (const UnitGraph::BufferSlice& slice : units.buffers) {
    cut_buffers[slice.name] = &slice.units;
  }
  for (const auto& [name, buffer] : model.buffers()) {
    std::string key = name;  // "bn1.running_mean" is saved as "bn1/running_mean"
    if (const size_t dot = key.rfind('.'); dot != std::string::npos) key[dot] = '/';
    const auto found = cut_buffers.find(name);
    if (found == cut_buffers.end()) {
      state.set(key, *buffer);
      continue;
    }
    const std::vector<int64_t> indices = kept_indices(*found->second, kept);
    Tensor smaller = Tensor::empty({static_cast<int64_t>(indices.size())});
    float* out = smaller.mutable_data();
    for (const int64_t at : indices) *out++ = std::as_const(*buffer).data()[at];
    state.set(key, std::move(smaller));
  }
  return state;
}

bool removes_all_zeros(const Module& model, const ModelUnits& units, const KeptUnits& kept) {
  const ParameterCuts cuts(units, kept);
  int64_t masked = 0, filled = 0;
  for (const ParameterPtr& parameter : model.parameters()) {
    masked += parameter->pattern()->nnz() < parameter->numel() ? 1 : 0;
    filled += cuts.fills(*parameter) ? 1 : 0;
  }
  return masked > 0 && filled == masked;
}

StateDict cut_optimizer_state(const StateDict& saved, const Module& model, const ModelUnits& units,
                              const KeptUnits& kept) {
  const ParameterCuts cuts(units, kept);
  StateDict state;
  state.set("type", saved.get<std::string>("type"));
  state.set("step", int64_t{0});
  int64_t earlier = saved.get<int64_t>("step");
  if (saved.contains("earlier_steps")) earlier += saved.get<int64_t>("earlier_steps");
  if (earlier > 0) state.set("earlier_steps", earlier);
  for (const ParameterPtr& parameter : model.parameters()) {
    const std::string prefix = parameter->name() + "/";
    for (const auto& [name, value] : saved.values()) {
      if (!name.starts_with(prefix) || name == prefix + "age") continue;
      const auto* array = std::get_if<Tensor>(&value);
      state.set(name, array == nullptr
                          ? value
                          : StateDict::Value(cuts.cut(*parameter, in_full(*parameter, *array))));
    }
  }
  return state;
}

}  // namespace lacuna
