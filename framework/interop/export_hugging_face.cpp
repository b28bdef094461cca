// A folder as Hugging Face's transformers save models: config.json and model.safetensors.
#include <fmt/core.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "lacuna/framework/core/error.h"
#include "lacuna/framework/interop/export_formats.hpp"
#include "lacuna/framework/interop/model_card.hpp"
#include "lacuna/framework/io/storage/file_system.hpp"
#include "lacuna/framework/io/storage/folder_lock.hpp"
#include "lacuna/framework/io/storage/safetensors_file.hpp"
#include "lacuna/framework/model/presets/foreign_names.hpp"
#include "lacuna/framework/model/presets/presets.hpp"

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

// As the family's files have it.
void turn_round(NamedArray& array, bool is_gpt2) {
  constexpr std::string_view kMask = "_mask";
  const auto* mask = std::get_if<ByteArray>(&array.value);
  const std::string stem =
      mask == nullptr ? array.name : array.name.substr(0, array.name.size() - kMask.size());
  array.name = hugging_face_name(stem) + (mask == nullptr ? "" : std::string(kMask));
  if (!is_gpt2 || !is_conv1d_weight(stem)) return;
  if (mask != nullptr) {
    array.value = transposed(*mask);
  } else {
    array.value = transposed(std::get<Tensor>(array.value));
  }
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
  const Config config = config_json(run);
  require_replaceable(path);
  const bool is_gpt2 = config.required<std::string>("model_type") == "gpt2";
  std::vector<NamedArray> arrays = named_arrays(run, options);
  for (NamedArray& array : arrays) turn_round(array, is_gpt2);
  const std::string card = card_for(run, path, options);
  FolderReplacement folder(path);
  const FolderLock lock(folder.temporary_path());  // against who removes leftovers
  write_file_atomically(folder.temporary_path() + "/" + kConfig, config.to_json_indented());
  write_safetensors_arrays(folder.temporary_path() + "/" + kWeights, arrays);
  if (!card.empty()) write_file_atomically(folder.temporary_path() + "/" + kCardName, card);
  folder.commit();
}

}  // namespace lacuna
