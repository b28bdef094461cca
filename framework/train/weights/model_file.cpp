#include "lacuna/framework/train/weights/model_file.h"

#include <fmt/core.h>

#include <algorithm>
#include <filesystem>
#include <memory>
#include <system_error>
#include <utility>

#include "lacuna/framework/core/error.h"
#include "lacuna/framework/io/checkpoint.h"
#include "lacuna/framework/nn/other_model_error.hpp"
#include "lacuna/framework/quantize/float32_values.hpp"
#include "lacuna/framework/train/input_format.h"
#include "lacuna/framework/train/runs/run_folder.h"
#include "lacuna/framework/train/weights/stored_values.hpp"
#include "lacuna/framework/train/weights/weight_comparison.hpp"

namespace lacuna {
namespace {

void require_stars(const WeightNames& names) {
  for (const auto& [from, to] : names.rename) {
    if (std::ranges::count(to, '*') <= std::ranges::count(from, '*')) continue;
    throw ConfigError(fmt::format(
        "rename: '{}' has more stars than '{}', but each is replaced by the match of one of these",
        to, from));
  }
}

// Of a run folder the best that is kept, as those who use a model take it.
CheckpointFile find_weights(const std::string& path, std::vector<std::string>& notes) {
  CheckpointFile file = find_checkpoint(path, KeptCheckpoint::Best);
  if (file.path() != path && file.path().ends_with("/best.h5")) {
    notes.push_back(
        fmt::format("using '{}', the best that the run has kept (--init-from RUN --last selects "
                    "the last; so does its path)",
                    file.path()));
  }
  return file;
}

}  // namespace

void save_model(const std::string& path, const Module& model) {
  Checkpoint checkpoint;
  checkpoint.state.merge("model", model.state_dict());
  write_checkpoint(path, checkpoint);
}

LoadedWeights load_weights(const std::string& path, Module& model, const WeightNames& names) {
  if (is_foreign_file(path)) {
    require_stars(names);
    const std::unique_ptr<StoredValues> stored = open_stored_arrays(path);
    return WeightComparison(model, *stored, names).load();
  }
  if (!names.empty()) {
    require_stars(names);
    std::vector<std::string> notes;
    const CheckpointFile file = find_weights(path, notes);
    const auto stored = open_stored_checkpoint(file);
    LoadedWeights loaded = WeightComparison(model, *stored, names).load();
    loaded.notes.insert(loaded.notes.begin(), notes.begin(), notes.end());
    const StateDict state = file.read().state;
    loaded.is_quantized = !state.below("quantized").empty();
    const StateDict data = state.below("data");
    if (!data.empty()) {
      const InputFormat format = InputFormat::from_state(data);
      loaded.columns = format.columns;
      loaded.categories = format.categories;
    }
    return loaded;
  }
  std::vector<std::string> notes;
  const CheckpointFile file = find_weights(path, notes);
  const Checkpoint checkpoint = file.read();
  const StateDict state = model_state(checkpoint.state);
  require_finite(state, file.path());
  require_variances(state, file.path());
  try {
    model.load_state_dict(state);
  } catch (const OtherModelError& error) {
    throw OtherModelError(fmt::format("{} (in '{}')", error.what(), file.path()));
  } catch (const CheckpointError& error) {
    throw CheckpointError(fmt::format("{} (in '{}')", error.what(), file.path()));
  }
  const StateDict data = checkpoint.state.below("data");
  const bool is_quantized = !checkpoint.state.below("quantized").empty();
  if (data.empty()) {
    return {.notes = std::move(notes), .masked = {}, .is_quantized = is_quantized};
  }
  const InputFormat format = InputFormat::from_state(data);
  return {.notes = std::move(notes),
          .masked = {},
          .tokenizer = format.tokenizer,
          .is_quantized = is_quantized,
          .columns = format.columns,
          .categories = format.categories};
}

std::vector<Int8Weight> load_int8(const std::string& path, Module& model,
                                  const WeightNames& names) {
  if (!is_foreign_file(path)) return {};
  const std::unique_ptr<StoredValues> stored = open_stored_arrays(path);
  std::vector<Int8Weight> weights = WeightComparison(model, *stored, names).int8_weights();
  // Files of other tools do not say it; a config.json next to them may.
  const auto has_no_grid = [](const Int8Weight& weight) { return !weight.input; };
  if (weights.empty() || !std::ranges::all_of(weights, has_no_grid)) return weights;
  std::error_code error;
  const std::string folder = std::filesystem::is_directory(path, error)
                                 ? path
                                 : std::filesystem::path(path).parent_path().string();
  if (states_float32_inputs(folder.empty() ? "." : folder)) {
    for (Int8Weight& weight : weights) weight.rounds_inputs = false;
  }
  return weights;
}

bool is_foreign_weights(const std::string& path) {
  if (!is_foreign_file(path)) return false;
  refuse_pickles(path);
  return true;
}

void set_init_from(Config& config, const std::string& path, const std::string& argument) {
  Config model = config.at("model");
  if (model.is_list()) {
    config.set("model", Config::map({{"layers", model}}));
    model = config.at("model");
  }
  if (!model.is_map()) model.fail("a list of layers, or a map");
  Config source(path);
  source.set_position({argument, 0, 0});
  Config stated = model.get("init_from");
  stated.is_map() ? stated.set("path", source) : model.set("init_from", source);
}

}  // namespace lacuna
