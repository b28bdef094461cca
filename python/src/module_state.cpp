// The state of models as arrays by name, as PyTorch has it.
#include <fmt/core.h>

#include <algorithm>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "binding.hpp"
#include "handles.hpp"
#include "lacuna/framework/config/names.h"
#include "lacuna/framework/core/error.h"
#include "lacuna/framework/nn/module.h"
#include "parameter_arrays.hpp"

namespace lacuna::python {

py::dict state_dict(Module& module, bool masks) {
  take_over_writes();
  py::dict state;
  for (const ParameterPtr& p : module.parameters()) {
    state[py::str(p->name())] = to_array(p->to_dense());
    const bool is_sparse = !p->pattern()->is_dense();
    if (masks && is_sparse) state[py::str(p->name() + "_mask")] = to_array(MaskSet(p->pattern()));
  }
  for (const auto& [name, buffer] : module.buffers()) {
    state[py::str(name)] = to_array(buffer->clone());
  }
  return state;
}

void load_state_dict(Module& module, const py::dict& state, bool strict) {
  take_over_writes();
  std::vector<std::string> problems;
  std::vector<std::pair<ParameterPtr, Tensor>> values;
  std::vector<std::pair<ParameterPtr, MaskSet>> masks;
  std::vector<std::pair<Tensor*, Tensor>> buffers;
  size_t known = 0;
  const auto array_of = [&](const std::string& name, const Shape& shape) -> std::optional<Tensor> {
    if (!state.contains(name)) {
      if (strict) problems.push_back("'" + name + "' is missing");
      return std::nullopt;
    }
    ++known;
    Tensor array = to_tensor(state[py::str(name)]);
    if (array.shape() == shape) return array;
    problems.push_back(fmt::format("'{}' has shape {}, the model's is {}", name,
                                   array.shape().to_string(), shape.to_string()));
    return std::nullopt;
  };
  for (const ParameterPtr& p : module.parameters()) {
    if (auto array = array_of(p->name(), p->shape())) values.emplace_back(p, std::move(*array));
    const std::string mask = p->name() + "_mask";
    if (!state.contains(mask)) continue;
    ++known;
    masks.emplace_back(p, to_mask(state[py::str(mask)], p->shape(), "'" + mask + "'"));
  }
  for (const auto& [name, buffer] : module.buffers()) {
    if (auto array = array_of(name, buffer->shape())) buffers.emplace_back(buffer, *array);
  }
  if (strict && known < state.size()) {
    for (const auto& [key, value] : state) {
      const auto name = key.cast<std::string>();
      const auto all = module.parameters();
      const bool is_parameter = std::ranges::any_of(all, [&](const ParameterPtr& p) {
        return p->name() == name || p->name() + "_mask" == name;
      });
      const auto kept = module.buffers();
      const bool is_buffer =
          std::ranges::any_of(kept, [&](const auto& buffer) { return buffer.first == name; });
      const bool is_counter = name.ends_with("num_batches_tracked");
      if (!is_parameter && !is_buffer && !is_counter) {
        problems.push_back("'" + name + "' is not the model's");
      }
    }
  }
  if (!problems.empty()) {
    throw CheckpointError("the state does not fit the model: " + join_foreign(problems, "; "));
  }
  for (const auto& [parameter, mask] : masks) py::cast(parameter).attr("mask") = to_array(mask);
  for (const auto& [parameter, array] : values) parameter->assign(array);
  for (const auto& [buffer, array] : buffers) *buffer = array.clone();
}

}  // namespace lacuna::python
