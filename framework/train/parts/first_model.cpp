#include "lacuna/framework/train/parts/first_model.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "lacuna/framework/core/error.h"
#include "lacuna/framework/io/checkpoint.h"
#include "lacuna/framework/io/storage/array_file.hpp"
#include "lacuna/framework/io/yaml.h"
#include "lacuna/framework/nn/module_rows.h"
#include "lacuna/framework/train/calibration_data.hpp"
#include "lacuna/framework/train/model_builder.hpp"
#include "lacuna/framework/train/parts/sparsity_defaults.hpp"
#include "lacuna/framework/train/parts/widen.hpp"
#include "lacuna/framework/train/runs/run_folder.h"
#include "lacuna/framework/train/weights/model_file.h"
#include "lacuna/sparsity/configure.h"

namespace lacuna {
namespace {

// The final nonzeros of each parameter, by the plan of a configuration's sparsity.
std::map<std::string, int64_t> final_nonzeros(const ExperimentBuild& b, Config& config,
                                              Sequential& model,
                                              const std::vector<ModuleRow>& rows) {
  const Experiment& e = b.e;
  complete_sparsity(config,
                    {.model = &model,
                     .rows = rows,
                     .length = {.steps = e.total_steps(), .steps_per_epoch = e.steps_per_epoch()},
                     .is_fresh = true,
                     .seed = e.train.seed});
  const Config section = config.at("sparsity");
  write_calibration_defaults(section, *e.data.train, e.train.batch_size);
  const std::unique_ptr<SparsityAlgorithm> algorithm = configure(section, e.train.seed);
  require_calibration_examples(section, *e.data.train, e.train.batch_size);
  algorithm->compression().are_measured = false;
  algorithm->calibrate_on(calibration_data(e.data.train, e.train.seed, e.train.batch_size));
  std::map<std::string, int64_t> nonzeros;
  try {
    model.apply(*algorithm);
    for (const PlannedParameter& planned : algorithm->plan(e.total_steps())) {
      nonzeros[planned.parameter] = planned.final_nnz;  // the last of its phases
    }
  } catch (const Error& error) {
    section.error(error.what());
  }
  return nonzeros;
}

ModelCost cost_of(const ExperimentBuild& b, Config& config, bool sparse) {
  const Dataset& data = *b.e.data.train;
  const Config section = config.at("model");
  const ModelLayers layers = model_layers(section, model_context(b));
  const std::unique_ptr<Sequential> model = build_model(layers, data.example_shape());
  const Config frozen = section.get("frozen");
  if (frozen.is_scalar() && !frozen.is_null()) model->freeze({frozen.as<std::string>()});
  if (frozen.is_list()) model->freeze(frozen.as<std::vector<std::string>>());
  model->initialize(b.e.train.seed);
  const std::vector<ModuleRow> rows = module_rows(*model, data.example_shape(), data.lengths());
  std::map<std::string, int64_t> nonzeros;
  if (sparse) nonzeros = final_nonzeros(b, config, *model, rows);
  const auto count = [&](const Parameter& parameter) {
    const auto found = nonzeros.find(parameter.name());
    return found == nonzeros.end() ? parameter.numel() : found->second;
  };
  ModelCost cost;
  for (const ParameterPtr& parameter : model->parameters()) cost.nnz += count(*parameter);
  cost.flops = count_flops(rows, [&](const Parameter& parameter) {
                 return static_cast<double>(count(parameter));
               }).forward;
  return cost;
}

// The source of loaded weights; errors of it are reported when they are loaded.
std::string path_of(const Config& source) {
  const Config path = source.is_map() ? source.peek("path") : source;
  return path.is_scalar() ? path.text() : "";
}

bool is_foreign(const std::string& file) {
  try {
    return is_foreign_weights(file);
  } catch (const Error&) {
    return false;
  }
}

// The scale of attention that an ONNX file of lacuna states; null: it states none. Whatever else is
// wrong with the file is reported when its weights are loaded.
Config scale_of_onnx(const std::string& file) {
  std::map<std::string, std::string> metadata;
  try {
    metadata = open_array_file(file)->metadata();
  } catch (const Error&) {
    return {};
  }
  const auto stated = metadata.find(kAttentionScaleKey);
  if (stated == metadata.end()) return {};
  const Config scale = Config::plain(stated->second);
  if (!scale.is_number() || !(scale.as<double>() > 0.0) || std::isinf(scale.as<double>())) {
    throw DataError(fmt::format("{}: its metadata has {} '{}'; expected a positive number", file,
                                kAttentionScaleKey, stated->second));
  }
  return scale;
}

// Uses the scale that the loaded weights were trained with; null: 1/√d.
void adopt(const Config& trained, Config section) {
  const Config given = section.peek("attention_scale");
  if (given == trained) return;
  if (given.is_null()) return section.set("attention_scale", trained.clone());
  given.error(fmt::format("the loaded weights were trained with {}; leave it out to use that",
                          trained.is_null() ? "1/√d" : trained.text()));
}

// Of the run whose weights are loaded; empty for files of `save_model`.
std::optional<Config> config_of_run(const std::string& file) {
  try {
    const std::string text = find_checkpoint(file, KeptCheckpoint::Best).read_config();
    if (text.empty()) return std::nullopt;
    return parse_yaml(text, file);
  } catch (const Error&) {
    return std::nullopt;
  }
}

constexpr std::array kPositions{"n_positions", "max_position_embeddings"};

// Positions of the run whose weights are loaded into this model, if the run states them and the
// model does not; otherwise 0. A file of another tool has its own.
int64_t positions_of_source(const Config& section) {
  const auto states = [](const Config& model) {
    return std::ranges::any_of(kPositions, [&](const char* key) { return model.has(key); });
  };
  if (!section.has("type") || states(section)) return 0;
  const std::string file = path_of(section.peek("init_from"));
  const std::optional<Config> run = is_foreign(file) ? std::nullopt : config_of_run(file);
  const Config model = run ? run->peek("model") : Config();
  if (!model.is_map()) return 0;
  for (const char* key : kPositions) {
    const Config positions = model.peek(key);
    if (positions.is_number()) return positions.as<int64_t>();
  }
  return 0;
}

}  // namespace

ModelContext model_context(const ExperimentBuild& b) {
  const Experiment& e = b.e;
  const Config section = e.config.at("model");
  const Dataset& data = *e.data.train;
  const Config source = section.is_map() ? section.peek("init_from") : Config();
  const bool has_positions = b.is_fresh() && data.vocabulary_size() > 0;
  const int64_t positions = !has_positions     ? 0
                            : source.is_null() ? data.example_shape()[0]
                                               : positions_of_source(section);
  const bool may_order = b.is_fresh() && e.config.peek("data.type").text() == "labelled_text";
  return {.vocabulary_size = data.vocabulary_size(),
          .positions = positions,
          .num_classes = e.loss.outputs(),
          .has_token_labels = e.loss.has_token_labels(),
          .class_names = may_order ? data.class_names() : std::vector<std::string>()};
}

std::string apply_widen(ExperimentBuild& b) {
  const Config section = b.e.config.at("model");
  if (!section.is_map() || section.peek("widen").is_null()) return "";
  const WidenOptions::Match match = read_widen(section).match;
  const Widening widening = widen_model(
      b.e.config, [&](Config& config, bool sparse) { return cost_of(b, config, sparse); });
  return "widened: " + widening.in_words(match);
}

void adopt_attention_scale(const Config& config) {
  const Config section = config.at("model");
  const Config source = section.is_map() ? section.peek("init_from") : Config();
  if (source.is_null()) return;
  const std::string file = path_of(source);
  if (!is_foreign(file)) {
    const std::optional<Config> run = config_of_run(file);
    if (!run) return;
    const Config loaded = run->peek("model");
    return adopt(loaded.is_map() ? loaded.peek("attention_scale") : Config(), section);
  }
  if (file.ends_with(".onnx")) {  // whose weights do not include it
    if (const Config stated = scale_of_onnx(file); !stated.is_null()) adopt(stated, section);
    return;
  }
  const Config given = section.peek("attention_scale");
  if (given.is_null() || config.peek("parametrization").is_null()) return;
  given.error("weights exported by lacuna already include this scale; leave it out");
}

bool loads_divided_outputs(const Config& config) {
  const Config section = config.at("model");
  const Config source = section.is_map() ? section.peek("init_from") : Config();
  if (source.is_null()) return false;
  const std::string file = path_of(source);
  const std::optional<Config> run = is_foreign(file) ? std::nullopt : config_of_run(file);
  if (!run || run->peek("parametrization").is_null()) return false;
  const Config divides = run->peek("parametrization.output_multiplier");
  if (!divides.is_null() && !divides.as<bool>()) return false;
  const Config model = run->peek("model");
  if (!model.is_map() || model.peek("init_from").is_null()) return true;
  // That run loaded weights itself; what came of it is in its state.
  const Checkpoint checkpoint = find_checkpoint(file, KeptCheckpoint::Best).read();
  const std::string key = "parametrization/output_multiplier";
  return checkpoint.state.contains(key) && checkpoint.state.count(key, 1) == 1;
}

}  // namespace lacuna
