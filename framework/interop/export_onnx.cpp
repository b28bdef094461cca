#include <map>
#include <string>
#include <utility>
#include <vector>

#include "lacuna/framework/config/config.h"
#include "lacuna/framework/interop/export_formats.hpp"
#include "lacuna/framework/interop/int8_arrays.hpp"
#include "lacuna/framework/io/checkpoint.h"
#include "lacuna/framework/onnx/export_onnx.hpp"
#include "lacuna/framework/train/parts/float32_model.hpp"

namespace lacuna {

void export_onnx_model(const LoadedRun& run, const std::string& path,
                       const ExportOptions& options) {
  std::map<std::string, std::string> metadata{{"lacuna.step", std::to_string(run.step)}};
  const StateDict inputs = run.inputs.state_dict();
  for (const char* key :
       {"normalization", "target_normalization", "class_names", "columns", "missing"}) {
    if (inputs.contains(key)) {
      metadata.emplace(std::string("lacuna.") + key, inputs.get<std::string>(key));
    }
  }
  const OnnxValues values = options.sparse ? OnnxValues::Sparse : OnnxValues::Dense;
  if (options.only != "int8") {
    return export_onnx(*run.model, run.inputs.example_shape, metadata, path, values);
  }
  std::vector<OnnxInt8Weight> weights;
  for (const QuantizedLayer& layer : int8_layers(run)) {
    OnnxInt8Weight weight{
        .name = layer.weight, .values = dense_int8(run, layer).values, .scales = layer.scales};
    if (layer.input) {
      weight.input_scale = layer.input->scale;
      weight.input_zero = static_cast<uint8_t>(layer.input->zero);
    }
    weights.push_back(std::move(weight));
  }
  // Int8 weights have the batch normalizations behind them in them.
  const auto folded = rebuild_float32_model(run.config, CheckpointFile(run.checkpoint).read().state,
                                            run.inputs.example_shape);
  export_onnx(*folded, run.inputs.example_shape, metadata, path, values, weights);
}

}  // namespace lacuna
