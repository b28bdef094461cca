#include "lacuna/framework/interop/import_run.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <system_error>
#include <utility>
#include <vector>

#include "lacuna/framework/core/error.h"
#include "lacuna/framework/core/plural.hpp"
#include "lacuna/framework/inference/fold_batch_norm.hpp"
#include "lacuna/framework/io/storage/file_system.hpp"
#include "lacuna/framework/nn/affine_layer.h"
#include "lacuna/framework/quantize/int8_candidates.hpp"
#include "lacuna/framework/quantize/quantized_layer.hpp"
#include "lacuna/framework/train/loop/trainer.hpp"
#include "lacuna/framework/train/parts/experiment.hpp"
#include "lacuna/framework/train/runs/run_folder.h"
#include "lacuna/framework/train/weights/initial_values.hpp"
#include "lacuna/framework/train/weights/model_file.h"

namespace lacuna {
namespace {

// The configuration as a training with these first weights would have it.
Config with_source(const Config& given, const std::string& file, const std::string& run_dir,
                   const ImportOptions& options) {
  Config config = given.clone();
  std::error_code unknown;  // a current folder that was removed
  const std::filesystem::path absolute = std::filesystem::absolute(file, unknown);
  set_init_from(config, unknown ? file : absolute.string(), "import " + file);
  if (options.find_pattern) {
    Config model = config.at("model"), source = model.at("init_from");
    if (!source.is_map()) model.set("init_from", Config::map({{"path", source}}));
    model.at("init_from").set("find_pattern", true);
  }
  config.set("run_dir", run_dir);
  return config;
}

// The int8 weight as it is with the batch_norm behind it, which multiplies its rows.
void put_in(const std::vector<double>& factors, Int8Weight& weight) {
  const auto refuse = [&](const std::string& problem) {
    throw ConfigError("the int8 weight '" + weight.name + "': " + problem);
  };
  const size_t columns = weight.values.values.size() / std::max<size_t>(weight.scales.size(), 1);
  for (size_t r = 0; r < weight.scales.size(); ++r) {
    const double scale = static_cast<double>(weight.scales[r]) * std::abs(factors[r]);
    weight.scales[r] = static_cast<float>(scale);
    if (!weight.folded_scales.empty()) {
      const auto stated = static_cast<double>(weight.folded_scales[r]);
      if (!(std::abs(stated - scale) <= 1e-5 * stated)) {
        refuse("its scales belong to another batch_norm than the one after it in the file");
      }
      weight.scales[r] = weight.folded_scales[r];
    }
    if (factors[r] >= 0.0) continue;
    for (size_t i = r * columns; i < (r + 1) * columns; ++i) {
      int8_t& value = weight.values.values[i];
      if (value == -128) refuse("a value is -128, and its batch_norm would flip the sign");
      value = static_cast<int8_t>(-value);
    }
  }
}

QuantizedLayer layer_of(const Int8Weight& weight, const Module& model) {
  const ParameterPtr parameter = model.parameter(weight.name);
  const Pattern& pattern = *parameter->pattern();
  const BitMask kept = pattern.is_dense() ? BitMask() : pattern.mask();
  QuantizedLayer layer{.weight = weight.name, .scales = weight.scales};
  if (weight.input) layer.input = Int8Grid{weight.input->scale, weight.input->zero};
  layer.rounds_inputs = weight.rounds_inputs;
  for (size_t i = 0; i < weight.values.values.size(); ++i) {
    const int8_t value = weight.values.values[i];
    if (pattern.is_dense() || kept.test(static_cast<int64_t>(i))) {
      layer.values.push_back(value);
    } else if (value != 0) {
      throw ConfigError("the sparsity section prunes '" + weight.name +
                        "', whose int8 weights come from the file; leave the section out");
    }
  }
  return layer;
}

// Those that the model has in int8 from the file, if it has any.
std::vector<QuantizedLayer> imported_int8(const Experiment& e) {
  std::vector<QuantizedLayer> layers;
  const auto factors = batch_norm_factors(*e.model, e.data.train->example_shape());
  for (Int8Weight& weight : first_int8(e.config.at("model"), *e.model)) {
    const auto norm = factors.find(weight.name);
    if (norm != factors.end()) {
      put_in(norm->second, weight);
    } else if (!weight.folded_scales.empty()) {
      throw ConfigError(
          "the int8 weight '" + weight.name +
          "' was made with a batch_norm after it, which the configuration does not have");
    }
    layers.push_back(layer_of(weight, *e.model));
  }
  if (layers.empty()) return layers;
  const std::vector<Module*> modules = e.model->modules();
  for (const QuantizedLayer& layer : layers) {
    for (const Module* module : modules) {
      const auto* affine = dynamic_cast<const AffineLayer*>(module);
      if (affine == nullptr || affine->weight()->name() != layer.weight) continue;
      const std::string reason =
          reason_against_int8(*module, layer.rounds_inputs ? QuantizeOptions::When::Static
                                                           : QuantizeOptions::When::None);
      if (reason.empty()) continue;
      throw ConfigError("'" + layer.weight +
                        "' is int8 in the file, but cannot run in int8 here: " + reason +
                        "; export it in float32");
    }
  }
  return layers;
}

// The checkpoint that was written, as one of a quantized run.
void make_quantized(const RunFolder& folder, const std::vector<QuantizedLayer>& layers) {
  const CheckpointFile file = find_checkpoint(folder.path());
  Checkpoint checkpoint = file.read();
  StateDict kept;
  for (const char* part : {"model", "ema", "data", "origins"}) {
    const StateDict of_part = checkpoint.state.below(part);
    if (!of_part.empty()) kept.merge(part, of_part);
  }
  kept.merge("quantized", state_of(layers));
  checkpoint.state = std::move(kept);
  folder.save_checkpoint(checkpoint, 1);
}

}  // namespace

ImportedRun import_run(const std::string& file, const Config& config, const std::string& run_dir,
                       const ImportOptions& options) {
  RunFolder::require_unused(run_dir);  // before the data is read, which may take long
  const auto experiment =
      build_experiment(with_source(config, file, run_dir, options), Start::Untrained);
  ImportedRun imported{.checkpoint = {},
                       .notes = experiment->notes,
                       .numel = experiment->numel(),
                       .nnz = experiment->nnz()};
  for (const ParameterPtr& parameter : experiment->model->parameters()) {
    if (parameter->sparsified_by.empty()) continue;
    imported.notes.push_back(fmt::format("{}: {} manages it, {} of {} are nonzeros, stored as {}",
                                         parameter->name(), parameter->sparsified_by,
                                         parameter->pattern()->nnz(), parameter->numel(),
                                         parameter->pattern()->layout().name()));
  }
  const std::vector<QuantizedLayer> int8 = imported_int8(*experiment);
  FolderReplacement whole(run_dir);
  try {
    const RunFolder folder =
        RunFolder::create(whole.temporary_path(), experiment->config.to_yaml());
    Trainer(*experiment, folder, ProgressStyle::Lines).save_beginning();
    if (!int8.empty()) make_quantized(folder, int8);
  } catch (const StateError& error) {
    throw StateError(whole.in_place(error.what()));
  }
  if (!int8.empty()) {
    imported.notes.push_back(fmt::format("the run is quantized: {} in int8, beginning with {}",
                                         plural(static_cast<int64_t>(int8.size()), "weight"),
                                         int8.front().weight));
  }
  RunFolder::require_unused(run_dir);  // again: no process has begun a run there
  whole.commit_new();
  imported.checkpoint = find_checkpoint(run_dir).path();
  return imported;
}

}  // namespace lacuna
