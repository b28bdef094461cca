// Files of arrays: safetensors, npz, and npz with sparse weights as scipy has them.
#include <limits>
#include <string>
#include <vector>

#include "lacuna/framework/interop/export_formats.hpp"
#include "lacuna/framework/interop/int8_arrays.hpp"
#include "lacuna/framework/io/storage/safetensors_file.hpp"
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
  if (options.sparse) {
    for (const ParameterPtr& parameter : run.model->parameters()) {
      if (parameter->pattern()->is_dense()) {
        arrays.push_back({parameter->name(), parameter->to_dense()});
      } else {
        add_bitmask(arrays, *parameter);
      }
    }
    add_buffers(arrays, run);
  } else {
    arrays = named_arrays(run, options);
  }
  std::vector<QuantizedLayer> layers;
  if (options.only == "int8") {
    layers = int8_layers(run);
    put_int8(run, layers, Int8Zero::Byte, arrays, options.sparse);
  }
  write_safetensors_arrays(path, arrays, int8_metadata(layers, kPlainMetadata));
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
