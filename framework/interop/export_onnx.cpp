#include <fmt/core.h>

#include <cstddef>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "lacuna/framework/config/config.h"
#include "lacuna/framework/interop/export_formats.hpp"
#include "lacuna/framework/interop/int8_arrays.hpp"
#include "lacuna/framework/io/checkpoint.h"
#include "lacuna/framework/onnx/export_onnx.hpp"
#include "lacuna/framework/train/parts/first_model.hpp"
#include "lacuna/framework/train/parts/float32_model.hpp"

namespace lacuna {
namespace {

// The tools were tried with such files: onnx 1.12, OpenCV 4.6 and ONNX Runtime 1.30.
CountSparse report_sparse(const ExportOptions& options) {
  return [&options](size_t sparse) {
    if (sparse == 0) return;
    options.report_note(fmt::format(
        "{} {} stored as sparse initializers. OpenCV's dnn and onnx's check_model(full_check=True) "
        "do not read them; ONNX Runtime does. For tools that do not, export without --sparse",
        sparse, sparse == 1 ? "weight is" : "weights are"));
  };
}

}  // namespace

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
  const Config model = run.config.at("model");
  const Config scale = model.is_map() ? model.peek("attention_scale") : Config();
  if (!scale.is_null()) metadata.emplace(kAttentionScaleKey, scale.text());
  const OnnxValues values = options.sparse ? OnnxValues::Sparse : OnnxValues::Dense;
  if (options.only != "int8") {
    export_onnx(*run.model, run.inputs.example_shape, metadata, path, values, {},
                report_sparse(options));
    return;
  }
  std::vector<OnnxInt8Weight> weights;
  const std::vector<QuantizedLayer> layers = int8_layers(run);
  metadata = int8_metadata(layers, std::move(metadata));
  for (const QuantizedLayer& layer : layers) {
    OnnxInt8Weight weight{.name = layer.weight,
                          .values = dense_int8(run, layer).values,
                          .scales = layer.scales,
                          .rounds_inputs = layer.rounds_inputs};
    if (layer.input) {
      weight.input_scale = layer.input->scale;
      weight.input_zero = static_cast<uint8_t>(layer.input->zero);
    }
    weights.push_back(std::move(weight));
  }
  // Int8 weights have the batch normalizations behind them in them.
  const auto folded = rebuild_float32_model(run.config, CheckpointFile(run.checkpoint).read().state,
                                            run.inputs.example_shape);
  export_onnx(*folded, run.inputs.example_shape, metadata, path, values, weights,
              report_sparse(options));
}

}  // namespace lacuna
