#include "lacuna/framework/interop/export_run.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <iterator>
#include <set>
#include <string>
#include <string_view>
#include <utility>

#include "lacuna/framework/config/names.h"
#include "lacuna/framework/core/error.h"
#include "lacuna/framework/interop/export_formats.hpp"
#include "lacuna/framework/interop/fold_attention.hpp"
#include "lacuna/framework/interop/int8_arrays.hpp"
#include "lacuna/framework/interop/model_card.hpp"
#include "lacuna/framework/io/storage/file_system.hpp"

namespace lacuna {
namespace {

namespace fs = std::filesystem;

constexpr int64_t kFloat = sizeof(float), kLong = sizeof(int64_t);

// Bytes that a file is smaller by because it stores a parameter by its nonzeros, about: names,
// shapes and offsets of arrays are text, or of a few bytes. They may be negative. `value`: the
// bytes of a value.
using SavedBytes = int64_t (*)(const Parameter& parameter, int64_t value);

int64_t rank_of(const Parameter& parameter) { return parameter.shape().rank(); }

int64_t saved_by_bitmask(const Parameter& parameter, int64_t value) {
  if (parameter.pattern()->is_dense()) return 0;
  constexpr int64_t kEntry = 70;  // of an array in the header, without its name
  const int64_t words = (parameter.numel() + 31) / 32;
  const int64_t stored =
      value * parameter.pattern()->nnz() + kFloat * words + kLong * rank_of(parameter);
  return value * parameter.numel() - stored - 2 * (kEntry + std::ssize(parameter.name()));
}

int64_t saved_by_csr(const Parameter& parameter, int64_t /*value*/) {
  if (parameter.pattern()->is_dense()) return 0;
  constexpr int64_t kEntry = 128 + 30 + 46;  // npy's header, and two of the zip file's with a name
  const int64_t nnz = parameter.pattern()->nnz(), rows = parameter.shape()[0];
  const int64_t added = rank_of(parameter) == 2 ? 3 : 4;  // arrays
  const int64_t stored = 2 * kFloat * nnz + kFloat * (rows + 1) + 2 * kLong +
                         (added > 3 ? kLong * rank_of(parameter) : 0);
  return kFloat * parameter.numel() - stored -
         added * (kEntry + 2 * (std::ssize(parameter.name()) + 10));
}

// As export_onnx chooses: where less than a third is no zero, by coordinates of 8 bytes.
int64_t saved_by_coordinates(const Parameter& parameter, int64_t /*value*/) {
  if (parameter.shape().rank() < 2) return 0;
  const Tensor values = parameter.to_dense();
  const int64_t zeros = std::ranges::count(values.storage(), 0.0f);
  const int64_t numel = parameter.numel(), nonzeros = numel - zeros;
  if (3 * nonzeros >= numel) return 0;
  return kFloat * numel - (kFloat + kLong) * nonzeros;
}

struct Format {
  std::string_view name, about;
  ExportFunction write;
  bool takes_masks, takes_sparse;
  bool has_scales = false;  ///< whether it states how attention scales
  bool takes_int8 = false, takes_sparse_int8 = false;
  SavedBytes saved = nullptr;  ///< with --sparse, where it takes that
};

// The one place that knows which formats there are.
constexpr std::array<Format, 5> kFormats = {{
    {"csr-npz", "NumPy's npz; sparse weights as scipy's csr_matrix has them", export_csr_npz, false,
     false, false, false, false, saved_by_csr},
    {"hf", "a folder as Hugging Face's transformers save models", export_hugging_face, true, false,
     false, true},
    {"npz", "NumPy's npz: every weight dense", export_npz, true, false},
    {"onnx", "an ONNX model of opset 13, for runtimes (docs/guides/onnx.md)", export_onnx_model,
     false, true, true, true, false, saved_by_coordinates},
    {"safetensors", "a safetensors file: every weight dense", export_safetensors, true, true, false,
     true, true, saved_by_bitmask},
}};

const Format& find_format(const std::string& name) {
  std::vector<std::string> names;
  for (const Format& format : kFormats) {
    if (format.name == name) return format;
    names.emplace_back(format.name);
  }
  throw ConfigError(
      fmt::format("unknown format '{}' to export to; {}", name, suggest_name(name, names)));
}

void require_unused(const std::string& path, const ExportOptions& options) {
  std::error_code error;
  if (path.empty()) throw ConfigError("the path to export to is empty");
  if (path == "-")
    throw ConfigError(
        "export writes a file, not the standard output; give its name instead of '-'");
  const auto there = fs::symlink_status(path, error);
  if (!fs::exists(there) || options.overwrite) return;
  throw StateError(
      fmt::format("'{}' exists already: remove it, give another path, or use --overwrite", path));
}

void require_sparse(const Format& format, const ExportOptions& options) {
  if (!format.takes_sparse) {
    throw ConfigError(
        fmt::format("the format '{}' does not support --sparse; safetensors and onnx do, and "
                    "csr-npz is always sparse",
                    format.name));
  }
  if (options.masks) throw ConfigError("--sparse stores the masks; leave out --masks");
}

constexpr const char* kInt8Formats =
    "safetensors (also with --sparse), hf, and onnx without --sparse hold int8";

// "int8" or "float32", and for whom float32 would be a surprise a note.
std::string precision_to_write(const LoadedRun& run, const Format& format,
                               const ExportOptions& options) {
  const std::string& only = options.only;
  if (!only.empty() && only != "int8" && only != "float32") {
    throw ConfigError("--only takes int8 or float32, found '" + only + "'");
  }
  const bool is_quantized = !int8_layers(run).empty();
  const bool can = options.sparse ? format.takes_sparse_int8 : format.takes_int8;
  if (only == "int8" && !is_quantized) {
    throw ConfigError("'" + run.checkpoint +
                      "' has no int8 weights; quantize it first (lacuna quantize)");
  }
  if (only == "int8" && !can) {
    throw ConfigError(fmt::format("the format '{}'{} holds only float32; {}", format.name,
                                  options.sparse ? " with --sparse" : "", kInt8Formats));
  }
  if (!is_quantized || only == "float32") return "float32";
  if (can) return "int8";
  options.report_note(
      fmt::format("the file holds the float32 weights of a quantized run; {}", kInt8Formats));
  return "float32";
}

void measure(const LoadedRun& run, const std::string& path, const Format& format,
             const ExportOptions& options, ExportedRun& exported) {
  std::error_code error;
  const auto size = fs::is_regular_file(path, error) ? fs::file_size(path, error) : 0;
  if (!error) exported.bytes = static_cast<int64_t>(size);
  if (format.saved == nullptr || options.sparse != format.takes_sparse) return;
  std::set<std::string> of_bytes;  // names of the weights whose values are bytes
  if (options.only == "int8") {
    for (const QuantizedLayer& layer : int8_layers(run)) of_bytes.insert(layer.weight);
  }
  exported.dense_bytes = exported.bytes;
  for (const ParameterPtr& parameter : run.model->parameters()) {
    exported.dense_bytes +=
        format.saved(*parameter, of_bytes.contains(parameter->name()) ? 1 : kFloat);
  }
}

ExportedRun export_card(const std::string& run_or_checkpoint, const std::string& path,
                        const ExportOptions& options) {
  if (options.sparse) throw ConfigError("--sparse needs --format: a card has no weights");
  if (options.masks) throw ConfigError("--masks needs --format: a card has no weights");
  if (!options.only.empty()) {
    throw ConfigError("--only needs --format: a card has no weights");
  }
  require_unused(path, options);
  std::error_code error;
  if (fs::is_directory(path, error)) {
    throw ConfigError("'" + path + "' is a folder; give the card's name, as " + path + "/" +
                      kCardName);
  }
  const LoadedRun run = load_run(run_or_checkpoint, options.kept);
  write_file_atomically(path, model_card(run, ""));
  return {.checkpoint = run.checkpoint, .step = run.step, .is_averaged = run.is_averaged};
}

}  // namespace

std::vector<std::pair<std::string, std::string>> export_formats() {
  std::vector<std::pair<std::string, std::string>> list;
  for (const Format& format : kFormats) list.emplace_back(format.name, format.about);
  return list;
}

ExportedRun export_run(const std::string& run_or_checkpoint, const std::string& path,
                       const ExportOptions& options) {
  if (options.format.empty()) return export_card(run_or_checkpoint, path, options);
  const Format& format = find_format(options.format);
  if (options.card && format.write != export_hugging_face) {
    throw ConfigError(fmt::format(
        "the format '{}' cannot contain a card; write the card with --card alone", format.name));
  }
  if (options.masks && !format.takes_masks) {
    throw ConfigError(fmt::format(
        "the format '{}' cannot store masks next to the weights; safetensors, npz and hf can",
        format.name));
  }
  if (options.sparse) require_sparse(format, options);
  require_unused(path, options);
  const LoadedRun run = load_run(run_or_checkpoint, options.kept);
  ExportedRun exported{
      .checkpoint = run.checkpoint, .step = run.step, .is_averaged = run.is_averaged};
  ExportOptions chosen = options;
  chosen.report_note = [&](const std::string& note) {
    exported.notes.push_back(note);
    if (options.report_note) options.report_note(note);
  };
  chosen.only = precision_to_write(run, format, chosen);
  if (!format.has_scales) fold_attention_scale(run);
  for (Module* module : run.model->modules()) {
    if (!module->has_input_transforms() && !module->has_output_transforms()) continue;
    chosen.report_note(
        fmt::format("the activations of '{}' are sparsified in this run (`sparsifiers`), which the "
                    "file cannot express",
                    module->path()));
  }
  format.write(run, path, chosen);
  measure(run, path, format, chosen, exported);
  return exported;
}

}  // namespace lacuna
