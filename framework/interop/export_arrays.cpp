// Files of arrays: safetensors, npz, and npz with sparse weights as scipy has them.
#include <algorithm>
#include <limits>
#include <utility>

#include "lacuna/framework/core/error.h"
#include "lacuna/framework/interop/export_formats.hpp"
#include "lacuna/framework/io/checkpoint.h"
#include "lacuna/framework/io/storage/safetensors_file.hpp"
#include "lacuna/framework/nn/batch_user.h"
#include "lacuna/framework/quantize/quantized_layer.hpp"
#include "lacuna/framework/train/weights/bitmask_weight.hpp"

namespace lacuna {
namespace {

// Integers in 32 bits where they fit, which is what scipy makes of them.
template <class From>
void add_integers(std::vector<NamedArray>& arrays, const std::string& name, const From& values,
                  bool is_narrow) {
  if (is_narrow) {
    arrays.push_back({name, std::vector<int32_t>(values.begin(), values.end())});
  } else {
    arrays.push_back({name, std::vector<int64_t>(values.begin(), values.end())});
  }
}

void add_csr(std::vector<NamedArray>& arrays, const Parameter& parameter) {
  const std::string& name = parameter.name();
  const Positions positions = parameter.pattern()->positions();
  constexpr int64_t kMost = std::numeric_limits<int32_t>::max();
  const bool is_narrow = positions.count() <= kMost && positions.columns() <= kMost;
  arrays.push_back({name + ".data", parameter.compacted(parameter.values())});
  add_integers(arrays, name + ".indices", positions.column(), is_narrow);
  add_integers(arrays, name + ".indptr", positions.row_begin(), is_narrow);
  arrays.push_back({name + ".shape", std::vector<int64_t>{positions.rows(), positions.columns()}});
  if (parameter.shape().rank() == 2) return;
  const auto sizes = parameter.shape().sizes();
  arrays.push_back({name + ".tensor_shape", std::vector<int64_t>(sizes.begin(), sizes.end())});
}

void add_bitmask(std::vector<NamedArray>& arrays, const Parameter& parameter) {
  const std::string& name = parameter.name();
  const auto sizes = parameter.shape().sizes();
  arrays.push_back({name + std::string(kDataEnding), parameter.compacted(parameter.values())});
  arrays.push_back(
      {name + std::string(kBitmaskEnding), bitmask_words(parameter.pattern()->mask())});
  arrays.push_back(
      {name + std::string(kShapeEnding), std::vector<int64_t>(sizes.begin(), sizes.end())});
}

void add_buffers(std::vector<NamedArray>& arrays, const LoadedRun& run) {
  for (const auto& [name, values] : run.model->buffers()) arrays.push_back({name, values->clone()});
}

// Weights in int8 take the place of those in float32, with what a step is worth by their side, as
// compressed-tensors names them.
void put_quantized(const LoadedRun& run, std::vector<NamedArray>& arrays) {
  if (!run.config.has("quantize")) return;
  const StateDict state = CheckpointFile(run.checkpoint).read().state.below("quantized");
  for (const Module* module : run.model->modules()) {
    if (state.empty() || dynamic_cast<const BatchUser*>(module) == nullptr) continue;
    throw ConfigError("layer '" + module->path() + "' (" + std::string(module->type()) +
                      ") is folded into int8 weights, which no file can state next to it; export "
                      "the run that this one was made from");
  }
  for (const QuantizedLayer& layer : quantized_layers(state)) {
    const ParameterPtr weight = run.model->parameter(layer.weight);
    const Pattern& pattern = *weight->pattern();
    const Positions positions =
        pattern.is_dense() ? Positions::all(pattern.shape()) : pattern.positions();
    if (positions.count() != static_cast<int64_t>(layer.values.size())) {
      throw CheckpointError("'" + run.checkpoint + "': the int8 values of '" + layer.weight +
                            "' are not as many as its positions");
    }
    SignedBytes dense{.shape = pattern.shape(),
                      .values = std::vector<int8_t>(static_cast<size_t>(pattern.numel()), 0)};
    size_t place = 0;
    positions.for_each(
        [&](int64_t at) { dense.values[static_cast<size_t>(at)] = layer.values[place++]; });
    for (NamedArray& array : arrays) {
      if (array.name == layer.weight) array.value = std::move(dense);
    }
    const auto outputs = static_cast<int64_t>(layer.scales.size());
    arrays.push_back({layer.weight + "_scale", Tensor::from(Shape{outputs, 1}, layer.scales)});
    if (!layer.input) continue;
    const std::string stem = layer.weight.substr(0, layer.weight.rfind('.') + 1);
    arrays.push_back({stem + "input_scale", Tensor::full(Shape{1}, layer.input->scale)});
    arrays.push_back({stem + "input_zero_point", std::vector<int32_t>{layer.input->zero}});
  }
}

}  // namespace

std::vector<NamedArray> named_arrays(const LoadedRun& run, const ExportOptions& options) {
  std::vector<NamedArray> arrays;
  for (const ParameterPtr& parameter : run.model->parameters()) {
    arrays.push_back({parameter->name(), parameter->to_dense()});
    if (!options.masks || parameter->pattern()->is_dense()) continue;
    arrays.push_back({parameter->name() + "_mask", parameter->mask()});
  }
  add_buffers(arrays, run);
  return arrays;
}

void export_safetensors(const LoadedRun& run, const std::string& path,
                        const ExportOptions& options) {
  std::vector<NamedArray> arrays;
  if (!options.sparse) {
    arrays = named_arrays(run, options);
    put_quantized(run, arrays);
    return write_safetensors_arrays(path, arrays);
  }
  for (const ParameterPtr& parameter : run.model->parameters()) {
    if (parameter->pattern()->is_dense()) {
      arrays.push_back({parameter->name(), parameter->to_dense()});
    } else {
      add_bitmask(arrays, *parameter);
    }
  }
  add_buffers(arrays, run);
  write_safetensors_arrays(path, arrays);
}

void export_npz(const LoadedRun& run, const std::string& path, const ExportOptions& options) {
  write_npz(path, named_arrays(run, options));
}

void export_csr_npz(const LoadedRun& run, const std::string& path, const ExportOptions&) {
  std::vector<NamedArray> arrays;
  for (const ParameterPtr& parameter : run.model->parameters()) {
    if (parameter->pattern()->is_dense()) {
      arrays.push_back({parameter->name(), parameter->to_dense()});
    } else {
      add_csr(arrays, *parameter);
    }
  }
  add_buffers(arrays, run);
  write_npz(path, arrays);
}

}  // namespace lacuna
