// A folder as Hugging Face's transformers save models: config.json and model.safetensors.
#include <fmt/core.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "lacuna/framework/core/error.h"
#include "lacuna/framework/interop/export_formats.hpp"
#include "lacuna/framework/interop/int8_arrays.hpp"
#include "lacuna/framework/interop/model_card.hpp"
#include "lacuna/framework/io/storage/file_system.hpp"
#include "lacuna/framework/io/storage/folder_lock.hpp"
#include "lacuna/framework/io/storage/safetensors_file.hpp"
#include "lacuna/framework/model/presets/foreign_names.hpp"
#include "lacuna/framework/model/presets/presets.hpp"
#include "lacuna/layers/linear.h"

namespace lacuna {
namespace {

namespace fs = std::filesystem;

constexpr const char *kConfig = "config.json", *kWeights = "model.safetensors";

Config config_json(const LoadedRun& run) {
  const Config model = run.config.at("model");
  if (!is_preset(model)) {
    throw ConfigError(fmt::format(
        "the model in '{}' is written as layers, and only presets can be exported to hf "
        "(gpt2, bert, distilbert, vit, llama); export it to safetensors or npz",
        run.checkpoint));
  }
  try {
    return hugging_face_config(
        model, {.example_shape = run.inputs.example_shape, .class_names = run.inputs.class_names});
  } catch (const ConfigError& error) {
    throw ConfigError(fmt::format("the model in '{}' cannot be exported to hf: {}", run.checkpoint,
                                  error.what()));
  }
}

SignedBytes transposed(const SignedBytes& matrix) {
  const int64_t rows = matrix.shape[0], columns = matrix.shape[1];
  SignedBytes turned{.shape = Shape{columns, rows}, .values = {}};
  turned.values.resize(matrix.values.size());
  for (int64_t i = 0; i < rows; ++i) {
    for (int64_t j = 0; j < columns; ++j) {
      turned.values[static_cast<size_t>(j * rows + i)] =
          matrix.values[static_cast<size_t>(i * columns + j)];
    }
  }
  return turned;
}

// The name of what an array says something of: its mask, or what its steps are worth.
std::string stem_of(const NamedArray& array) {
  const std::string ending = std::holds_alternative<ByteArray>(array.value) ? "_mask" : "_scale";
  const bool ends = array.name.ends_with(ending);
  return ends ? array.name.substr(0, array.name.size() - ending.size()) : array.name;
}

// As the family's files have it.
void turn_round(NamedArray& array, bool is_gpt2) {
  const std::string stem = stem_of(array);
  array.name = hugging_face_name(stem) + array.name.substr(stem.size());
  if (!is_gpt2 || !is_conv1d_weight(stem)) return;
  if (const auto* mask = std::get_if<ByteArray>(&array.value)) {
    array.value = transposed(*mask);
  } else if (const auto* bytes = std::get_if<SignedBytes>(&array.value)) {
    array.value = transposed(*bytes);
  } else {
    array.value = transposed(std::get<Tensor>(array.value));
  }
}

Config scheme(const char* strategy, bool is_symmetric, bool is_dynamic) {
  return Config::map({{"num_bits", 8},
                      {"type", "int"},
                      {"symmetric", is_symmetric},
                      {"strategy", strategy},
                      {"dynamic", is_dynamic},
                      {"group_size", Config()},
                      {"block_structure", Config()},
                      {"actorder", Config()},
                      {"observer", is_dynamic ? Config() : Config("minmax")},
                      {"observer_kwargs", Config::map()}});
}

// As compressed-tensors reads it: which layers are int8, and how.
Config quantization_config(const LoadedRun& run, const std::vector<QuantizedLayer>& layers,
                           bool is_gpt2) {
  Config ignored = Config::list();
  for (const Module* module : run.model->modules()) {
    if (dynamic_cast<const Linear*>(module) == nullptr) continue;
    const std::string weight = module->path() + ".weight";
    if (std::ranges::find(layers, weight, &QuantizedLayer::weight) != layers.end()) continue;
    const std::string name = hugging_face_name(weight);
    ignored.push_back(name.substr(0, name.rfind('.')));
  }
  const bool is_dynamic = !layers.front().input, is_float32 = have_float32_inputs(layers);
  Config targets = Config::list();
  targets.push_back(is_gpt2 ? "Conv1D" : "Linear");
  const Config group = Config::map(
      {{"targets", targets},
       {"weights", scheme("channel", true, false)},
       {"input_activations",
        is_float32 ? Config() : scheme(is_dynamic ? "token" : "tensor", false, is_dynamic)},
       {"output_activations", Config()}});
  return Config::map({{"quant_method", "compressed-tensors"},
                      {"format", is_float32 ? "naive-quantized" : "int-quantized"},
                      {"quantization_status", "compressed"},
                      {"config_groups", Config::map({{"group_0", group}})},
                      {"ignore", ignored},
                      {"kv_cache_scheme", Config()},
                      {"global_compression_ratio", Config()}});
}

// An earlier export, and nothing else.
void require_replaceable(const std::string& path) {
  std::error_code error;
  if (!fs::exists(path, error)) return;
  if (!fs::is_directory(path, error)) {
    throw StateError(fmt::format(
        "'{}' is a file, and the format hf is a folder; remove it, or give another path", path));
  }
  for (const auto& entry : fs::directory_iterator(path, error)) {
    const std::string name = entry.path().filename().string();
    if (name == kConfig || name == kWeights) continue;
    if (name == kCardName && is_model_card(entry.path().string())) continue;
    throw StateError(fmt::format(
        "the folder '{}' holds other files than an export's ('{}'), and is not replaced; remove "
        "them, or give another path",
        path, name));
  }
}

// The card that is asked for, or the one that is there: somebody may have filled it in.
std::string card_for(const LoadedRun& run, const std::string& path, const ExportOptions& options) {
  if (options.card) return model_card(run, "hf");
  std::ifstream stream(path + "/" + kCardName, std::ios::binary);
  return {std::istreambuf_iterator<char>(stream), {}};
}

}  // namespace

void export_hugging_face(const LoadedRun& run, const std::string& path,
                         const ExportOptions& options) {
  Config config = config_json(run);
  require_replaceable(path);
  const bool is_gpt2 = config.required<std::string>("model_type") == "gpt2";
  std::vector<NamedArray> arrays = named_arrays(run, options);
  std::vector<QuantizedLayer> layers;
  if (options.only == "int8") {
    layers = int8_layers(run);
    put_int8(run, layers, Int8Zero::Signed, arrays);
    config.set("quantization_config", quantization_config(run, layers, is_gpt2));
  }
  for (NamedArray& array : arrays) turn_round(array, is_gpt2);
  const std::string card = card_for(run, path, options);
  FolderReplacement folder(path);
  const FolderLock lock(folder.temporary_path());  // against who removes leftovers
  write_file_atomically(folder.temporary_path() + "/" + kConfig, config.to_json_indented());
  write_safetensors_arrays(folder.temporary_path() + "/" + kWeights, arrays,
                           int8_metadata(layers, kPlainMetadata));
  if (!card.empty()) write_file_atomically(folder.temporary_path() + "/" + kCardName, card);
  if (options.overwrite) {
    folder.commit();
  } else {
    folder.commit_new();
  }
}

}  // namespace lacuna
