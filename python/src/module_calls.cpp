// Calls of models, and their predictions in batches.
#include <fmt/core.h>

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "binding.hpp"
#include "handles.hpp"
#include "lacuna/framework/autograd/tokens/token_ids.h"
#include "lacuna/framework/config/names.h"
#include "lacuna/framework/core/error.h"
#include "lacuna/framework/nn/evaluation_mode.hpp"
#include "lacuna/framework/nn/module.h"
#include "lacuna/framework/nn/named_inputs.h"

namespace lacuna::python {
namespace {

// Names of the integers that a module and those below read in addition to their input.
std::vector<std::string> names_read_by(Module& module) {
  std::vector<std::string> names;
  const auto add = [&](const std::string& name) {
    if (!name.empty() && std::ranges::find(names, name) == names.end()) names.push_back(name);
  };
  for (Module* one : module.modules()) {
    if (one->type() == kLabelledTokens) add(kLabelledTokens);
    const auto* user = dynamic_cast<const NamedInputUser*>(one);
    const std::string name = user == nullptr ? "" : user->requested_input().name;
    if (name != kInputIds) add(name);  // which is the input itself
  }
  return names;
}

NamedTensors named_tensors(Module& module, const py::kwargs& named) {
  NamedTensors tensors;
  if (named.size() == 0) return tensors;
  const std::vector<std::string> known = names_read_by(module);
  for (const auto& [key, value] : named) {
    const auto name = key.cast<std::string>();
    if (std::ranges::find(known, name) == known.end()) {
      throw py::type_error(fmt::format(
          "the module reads no input '{}'; it reads {}", name,
          known.empty() ? "only the first argument" : "these by keyword: " + join(known, ", ")));
    }
    tensors.insert_or_assign(name, to_index_tensor(value));
  }
  return tensors;
}

Shape with_rows(const Shape& shape, int64_t rows) {
  std::vector<int64_t> sizes(shape.sizes().begin(), shape.sizes().end());
  sizes[0] = rows;
  return Shape(std::span<const int64_t>(sizes));
}

// Elements of the rows from `begin` on, for arrays with a dimension 0 of `count`.
template <class Values>
auto rows_within(const Values& values, int64_t count, int64_t begin, int64_t end) {
  const size_t width = values.size() / static_cast<size_t>(count);
  return values.subspan(static_cast<size_t>(begin) * width,
                        static_cast<size_t>(end - begin) * width);
}

IndexTensor rows_of(const IndexTensor& x, int64_t begin, int64_t end) {
  const auto rows = rows_within(std::span(x.values()), x.shape()[0], begin, end);
  return IndexTensor(with_rows(x.shape(), end - begin), {rows.begin(), rows.end()});
}

Variable rows_of(const Variable& x, int64_t begin, int64_t end) {
  if (const IndexTensor* ids = ids_of(x)) return token_ids(rows_of(*ids, begin, end));
  const auto rows = rows_within(x.value().storage(), x.shape()[0], begin, end);
  return Variable(Tensor::from(with_rows(x.shape(), end - begin), rows));
}

// Whether dimension 0 of all of them is the batch.
bool have_rows(const NamedTensors& named, int64_t count) {
  return std::ranges::all_of(named, [&](const auto& entry) {
    const Shape& shape = entry.second.shape();
    return entry.first != kLabelledTokens && shape.rank() > 0 && shape[0] == count;
  });
}

void require_rows(const Shape& output, const Shape& first, int64_t rows, int64_t count) {
  const auto fail = [&](const std::string& expected) {
    throw ShapeError(fmt::format(
        "predict: {} examples give an output of shape {}, expected {}; batch_size={} computes all "
        "examples at once",
        rows, output.to_string(), expected, count));
  };
  if (output.rank() == 0 || output[0] != rows) fail(fmt::format("{} in dimension 0", rows));
  const Shape expected = with_rows(first, rows);
  if (output != expected) fail(expected.to_string() + ", like the first batch's");
}

Tensor predict_in_batches(Module& module, const Variable& x, const NamedTensors& named,
                          int64_t batch_size) {
  const int64_t count = x.shape()[0];
  Tensor all;
  for (int64_t begin = 0; begin < count; begin += batch_size) {
    const int64_t end = std::min(count, begin + batch_size);
    NamedTensors rows;
    for (const auto& [name, tensor] : named) rows.emplace(name, rows_of(tensor, begin, end));
    const NamedInputs scope(rows);
    const Tensor y = module(rows_of(x, begin, end)).value().to(Order::RowMajor);
    require_rows(y.shape(), all.defined() ? all.shape() : y.shape(), end - begin, count);
    if (!all.defined()) all = Tensor::empty(with_rows(y.shape(), count));
    const int64_t width = y.numel() / (end - begin);
    std::ranges::copy(y.storage(), all.mutable_data() + begin * width);
  }
  return all;
}

}  // namespace

Variable call_module(Module& module, const py::object& input, const py::kwargs& named) {
  take_over_writes();
  const Variable x = to_variable(input);
  const NamedTensors tensors = named_tensors(module, named);
  const py::gil_scoped_release released;
  if (tensors.empty()) return module(x);
  const NamedInputs scope(tensors);
  return module(x);
}

Tensor predict_by_module(Module& module, const py::object& input, int64_t batch_size,
                         const py::kwargs& named) {
  take_over_writes();
  const Variable x = to_variable(input);
  if (x.shape().rank() == 0) throw ShapeError("predict: dimension 0 of the input is the batch");
  if (batch_size < 1) throw py::value_error("predict: batch_size must be at least 1");
  const NamedTensors tensors = named_tensors(module, named);
  const py::gil_scoped_release released;
  const EvaluationMode mode(module);
  const int64_t count = x.shape()[0];
  if (count > batch_size && have_rows(tensors, count)) {
    return predict_in_batches(module, x, tensors, batch_size);
  }
  const NamedInputs scope(tensors);
  return module(x).value().to(Order::RowMajor);
}

}  // namespace lacuna::python
