#include <map>
#include <string>

#include "lacuna/framework/config/config.h"
#include "lacuna/framework/interop/export_formats.hpp"
#include "lacuna/framework/onnx/export_onnx.hpp"

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
  export_onnx(*run.model, run.inputs.example_shape, metadata, path,
              options.sparse ? OnnxValues::Sparse : OnnxValues::Dense);
}

}  // namespace lacuna
