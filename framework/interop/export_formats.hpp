// The formats that a run can be exported to, a function each. The table of them is in
// export_run.cpp.
#pragma once

#include <string>
#include <vector>

#include "lacuna/framework/interop/export_run.h"
#include "lacuna/framework/interop/load_run.h"
#include "lacuna/framework/io/storage/array_file.hpp"

namespace lacuna {

/// Writes a run to a path at which there is nothing, or what is to be replaced. Notes on the file
/// go to `options.report_note`, which is set, before it is written.
using ExportFunction = void (*)(const LoadedRun& run, const std::string& path,
                                const ExportOptions& options);

void export_safetensors(const LoadedRun& run, const std::string& path,
                        const ExportOptions& options);
void export_npz(const LoadedRun& run, const std::string& path, const ExportOptions& options);
void export_csr_npz(const LoadedRun& run, const std::string& path, const ExportOptions& options);
/// A folder. *Errors:* ConfigError where the model is none of Hugging Face's.
void export_hugging_face(const LoadedRun& run, const std::string& path,
                         const ExportOptions& options);

/// With the inputs' normalization and the names of the classes as metadata, in JSON. A note names
/// the tools that do not read sparse initializers, if the file has some.
void export_onnx_model(const LoadedRun& run, const std::string& path, const ExportOptions& options);

/// Parameters, dense, and buffers under their names; with `masks` those of parameters that have
/// one.
std::vector<NamedArray> named_arrays(const LoadedRun& run, const ExportOptions& options);

}  // namespace lacuna
