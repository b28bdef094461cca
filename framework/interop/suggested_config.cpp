#include "lacuna/framework/interop/suggested_config.hpp"

#include <fmt/core.h>

#include <filesystem>
#include <memory>
#include <string_view>
#include <system_error>

#include "lacuna/framework/config/names.h"
#include "lacuna/framework/core/error.h"
#include "lacuna/framework/interop/found_model.hpp"
#include "lacuna/framework/io/storage/foreign_model.hpp"
#include "lacuna/framework/model/presets/presets.hpp"

namespace lacuna {
namespace {

namespace fs = std::filesystem;

// Where config.json and vocabularies may lie: in the folder, or next to the file.
std::string folder_of(const std::string& file) {
  std::error_code unknown;
  const fs::path path(file);
  if (fs::is_directory(path, unknown)) return file;
  return path.has_parent_path() ? path.parent_path().string() : ".";
}

std::string text_of(const FoundModel& model, const std::string& file) {
  return fmt::format(
      "# {0}, by the names and shapes in {1}\n"
      "# Replace {2}, look at the lines with a comment, then:\n"
      "#   lacuna import {1} --config {3} --out RUN\n"
      "data:\n{4}model:\n{5}{6}optimizer: {{type: adamw, lr: 0.0001}}\n"
      "train: {{epochs: 3, batch_size: 32}}\n",
      model.what, file, kFillIn, suggested_name(file), model.data, model.model, model.loss);
}

}  // namespace

SuggestedConfig suggest_config(const std::string& file) {
  if (!is_foreign_file(file)) {
    std::error_code unknown;
    if (!fs::exists(file, unknown)) throw CheckpointError("no such file or folder: '" + file + "'");
    if (const std::string words = foreign_model(file); !words.empty()) {
      throw CheckpointError("'" + file + "' " + words);
    }
    throw CheckpointError(fmt::format(
        "'{}' is not a .safetensors, .npz or .npy file, an .onnx file that lacuna wrote, or a "
        "folder with a model.safetensors",
        file));
  }
  const std::unique_ptr<StoredValues> stored = open_stored_arrays(file);
  if (const auto family = find_family(*stored, folder_of(file))) {
    return {.what = family->what, .yaml = text_of(*family, file)};
  }
  const FoundStack stack = find_stack(*stored);
  if (stack.model) return {.what = stack.model->what, .yaml = text_of(*stack.model, file)};
  constexpr size_t kMostLines = 40;
  return {.what = {},
          .yaml = {},
          .reason = fmt::format("it is not one of the presets ({}), nor a plain stack: {}",
                                join(preset_names(), ", "), stack.reason),
          .found = list_arrays(*stored, kMostLines)};
}

std::string suggested_name(const std::string& file) {
  fs::path path(file);
  if (!path.has_filename()) path = path.parent_path();  // "folder/"
  std::string name = path.filename().string();
  for (const std::string_view ending :
       {".safetensors.index.json", ".safetensors", ".npz", ".npy"}) {
    if (!name.ends_with(ending) || name.size() == ending.size()) continue;
    name.resize(name.size() - ending.size());
    break;
  }
  return name + ".yaml";
}

}  // namespace lacuna
