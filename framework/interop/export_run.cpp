#include "lacuna/framework/interop/export_run.h"

#include <fmt/core.h>

#include <array>
#include <filesystem>
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

struct Format {
  std::string_view name, about;
  ExportFunction write;
  bool takes_masks, takes_sparse;
  bool has_scales = false;  ///< whether it states how attention scales
  bool takes_int8 = false;
};

// The one place that knows which formats there are.
constexpr std::array<Format, 5> kFormats = {{
    {"csr-npz", "NumPy's npz; sparse weights as scipy's csr_matrix has them", export_csr_npz, false,
     false},
    {"hf", "a folder as Hugging Face's transformers save models", export_hugging_face, true, false,
     false, true},
    {"npz", "NumPy's npz: every weight dense", export_npz, true, false},
    {"onnx", "an ONNX model of opset 13, for runtimes (docs/guides/onnx.md)", export_onnx_model,
     false, true, true, true},
    {"safetensors", "a safetensors file: every weight dense", export_safetensors, true, true, false,
     true},
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

// "int8" or "float32", and for whom float32 would be a surprise a note.
std::string precision_to_write(const LoadedRun& run, const Format& format,
                               const ExportOptions& options, std::vector<std::string>& notes) {
  const std::string& only = options.only;
  if (!only.empty() && only != "int8" && only != "float32") {
    throw ConfigError("--only takes int8 or float32, found '" + only + "'");
  }
  const bool is_quantized = !int8_layers(run).empty();
  const bool can = format.takes_int8 && !options.sparse;
  if (only == "int8" && !is_quantized) {
    throw ConfigError("'" + run.checkpoint +
                      "' has no int8 weights; quantize it first (lacuna quantize)");
  }
  if (only == "int8" && !can) {
    throw ConfigError(
        fmt::format("{} holds only float32; safetensors, hf and onnx hold int8",
                    options.sparse ? "--sparse" : fmt::format("the format '{}'", format.name)));
  }
  if (!is_quantized || only == "float32") return "float32";
  if (can) return "int8";
  notes.emplace_back(
      "the file holds the float32 weights of a quantized run; safetensors, hf and onnx without "
      "--sparse hold int8");
  return "float32";
}

void measure(const LoadedRun& run, const std::string& path, ExportedRun& exported) {
  constexpr int64_t kFloat = sizeof(float);
  for (const ParameterPtr& parameter : run.model->parameters()) {
    exported.dense_bytes += parameter->numel() * kFloat;
  }
  for (const auto& [name, values] : run.model->buffers()) {
    exported.dense_bytes += values->numel() * kFloat;
  }
  std::error_code error;
  const auto size = fs::is_regular_file(path, error) ? fs::file_size(path, error) : 0;
  if (!error) exported.bytes = static_cast<int64_t>(size);
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
  chosen.only = precision_to_write(run, format, options, exported.notes);
  if (!format.has_scales) fold_attention_scale(run);
  for (std::string& note : format.write(run, path, chosen)) {
    exported.notes.push_back(std::move(note));
  }
  measure(run, path, exported);
  for (Module* module : run.model->modules()) {
    if (!module->has_input_transforms() && !module->has_output_transforms()) continue;
    exported.notes.push_back(
        fmt::format("the activations of '{}' are sparsified in this run (`sparsifiers`), which the "
                    "file cannot express",
                    module->path()));
  }
  return exported;
}

}  // namespace lacuna
