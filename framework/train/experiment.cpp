#include "lacuna/framework/train/experiment.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "lacuna/framework/core/error.h"
#include "lacuna/framework/core/input_checks.hpp"
#include "lacuna/framework/io/log.h"
#include "lacuna/framework/nn/module_rows.h"
#include "lacuna/framework/train/builtins.h"
#include "lacuna/framework/train/calibration_data.hpp"
#include "lacuna/framework/train/choices/convolution_algorithms.hpp"
#include "lacuna/framework/train/choices/density_limits.hpp"
#include "lacuna/framework/train/data/column_checks.hpp"
#include "lacuna/framework/train/data/ignored_labels.hpp"
#include "lacuna/framework/train/data/model_checks.hpp"
#include "lacuna/framework/train/data/run_origins.hpp"
#include "lacuna/framework/train/data/sparsifier_checks.hpp"
#include "lacuna/framework/train/data/vocabulary_checks.hpp"
#include "lacuna/framework/train/evaluation.h"
#include "lacuna/framework/train/initial_values.hpp"
#include "lacuna/framework/train/input_format.h"
#include "lacuna/framework/train/model_builder.hpp"
#include "lacuna/framework/train/run_folder.h"
#include "lacuna/layers/batch_norm.h"
#include "lacuna/optimizers/optimizer_registry.h"
#include "lacuna/sparsity/configure.h"
#include "lacuna/sparsity/sparsify.h"

namespace lacuna {
namespace {

// A key that is unknown is told before files that are not there: both are mended at once.
DataSplits load_data_of(const Config& config, uint64_t seed) {
  try {
    return load_data(config.at("data"), seed);
  } catch (const DataError&) {
    require_known_data_keys(config.at("data"));
    require_known_keys(config, seed);
    throw;
  }
}

// Under `fast` each process has one shard.
int64_t shards_of(const TrainOptions& train, const Communicator* job) {
  if (train.shards == 0 || train.reduction == Reduction::Exact) return train.shards;
  return job == nullptr ? 1 : job->size();
}

// Several processes need shards to share.
void require_shards(const Experiment& e, const Communicator* job) {
  if (job == nullptr || job->size() == 1 || e.train.shards > 0) return;
  e.config.get("train").get("shards").error(fmt::format(
      "{} processes were started, and shards: 0 is for one alone: a run that began so goes on "
      "without a launcher (lacuna train --resume --run-dir {}); a new one leaves shards out, or "
      "gives a multiple of {}",
      job->size(), e.config.optional<std::string>("run_dir").value_or("RUN"), job->size()));
}

void require_division(const Experiment& e, Start start, const Communicator* job) {
  if (job == nullptr || e.train.shards == 0 || e.train.reduction == Reduction::Fast) return;
  try {
    require_processes_divide(e.train.shards, job->size());
  } catch (const ConfigError& error) {
    const char* or_else = start == Start::Fresh ? ", or give another number of shards"
                                                : " (a run that goes on keeps its shards)";
    e.config.get("train").get("shards").error(error.what() + std::string(or_else));
  }
}

std::unique_ptr<DataParallel> make_parallel(const Experiment& e,
                                            const std::shared_ptr<Communicator>& job) {
  const int64_t shards = shards_of(e.train, job.get());
  if (shards == 0) return nullptr;
  // A bucket takes a message to each process, so that many processes need larger ones.
  constexpr int64_t kBucket = int64_t{1} << 16, kOfProcess = int64_t{1} << 14;
  const int64_t processes = job == nullptr ? 1 : job->size();
  DataParallelOptions options{.shards = shards,
                              .bucket_floats = std::max(kBucket, kOfProcess * processes)};
  if (e.train.batch_norm == NormBatch::Local) options.norms = NormScope::Process;
  if (e.train.reduction == Reduction::Fast) options.order = SumOrder::Any;
  return std::make_unique<DataParallel>(*e.model, job, options);
}

std::unique_ptr<Loader> make_loader(const Experiment& e, const Communicator* job) {
  const TrainOptions& train = e.train;
  const int64_t shards = shards_of(train, job);
  const int64_t processes = job == nullptr ? 1 : job->size(),
                rank = job == nullptr ? 0 : job->rank();
  return std::make_unique<Loader>(
      e.data.train, LoaderOptions{.batch_size = train.batch_size,
                                  .shuffle = Shuffle::EveryEpoch,
                                  .last_batch = train.drop_last ? LastBatch::Drop : LastBatch::Keep,
                                  .seed = train.seed,
                                  .prefetch = train.prefetch,
                                  .shards = shards,
                                  .first_shard = rank * shards / processes,
                                  .last_shard = (rank + 1) * shards / processes,
                                  .augment = e.data.augment});
}

// Mixtures are of two classes, so they have no class's weight.
void require_mixable(const Experiment& e) {
  if (e.data.augment.mixup == 0.0 || !e.loss.hangs_on_class()) return;
  e.config.at("data").at("augment").at("mixup").error(
      "mixtures of two classes have no weight of a class; leave out mixup or loss.class_weights "
      "and loss.ignore_index");
}

// Where it is asked for is told with what is wrong with it.
CheckpointFile find_teacher(const Config& key) {
  try {
    return find_checkpoint(key.as<std::string>());
  } catch (const CheckpointError& error) {
    throw CheckpointError(key.where() + ": " + error.what());
  }
}

// A teacher reads columns by their place.
void judge_teachers_columns(const std::vector<std::string>& trained, const Experiment& e) {
  const auto [moved, renamed] =
      compare_columns({.inputs = trained, .label = {}}, {.inputs = e.data.columns, .label = {}});
  if (!moved.empty()) throw ConfigError("the teacher was trained on a table, and " + moved);
  const bool is_table = e.data.train->vocabulary_size() == 0;  // text is found by the configuration
  if (!renamed.empty() && is_table)
    log_warning("the teacher reads columns by their place: " + renamed);
}

// The part of a teacher's state that it answers by.
StateDict weights_of(const Checkpoint& checkpoint, const Config& config) {
  StateDict weights;
  weights.merge("model", checkpoint.state.below("model"));
  const Config train = config.get("train");
  if (train.is_map() && train.has("ema")) weights.merge("ema", checkpoint.state.below("ema"));
  return weights;
}

// The model that a loss of type distillation learns from.
std::unique_ptr<Sequential> load_teacher(const Experiment& e, RunOrigins& origins) {
  if (!e.loss.distillation()) return nullptr;
  const Config key = e.config.at("loss").at("teacher");
  return at_position(key, [&] {
    const CheckpointFile file = find_teacher(key);
    const Checkpoint checkpoint = file.read();
    const Config config = saved_config(checkpoint, file.path());
    const Shape& example = e.data.train->example_shape();
    const InputFormat format = InputFormat::from_state(checkpoint.state.below("data"));
    require_teachers_vocabulary(*e.data.train, format.tokenizer);
    judge_teachers_columns(format.columns, e);
    origins.teacher = {.step = checkpoint.step, .hash = hash_state(weights_of(checkpoint, config))};
    std::unique_ptr<Sequential> teacher;
    naming_file(file.path(), [&] { teacher = rebuild_model(config, checkpoint.state, example); });
    if (const auto misfit = find_attention_misfit(*teacher, *e.data.train)) {
      throw ConfigError(
          fmt::format("the teacher's layer '{}' (attention) {}", misfit->layer, misfit->reason));
    }
    if (teacher->output_shape(example) == e.loss.output_shape()) return teacher;
    throw ConfigError(
        fmt::format("the teacher gives shape {} per example, and the data asks for {}",
                    teacher->output_shape(example).to_string(), e.loss.output_shape().to_string()));
  });
}

// By `model.frozen`, beside what layers have frozen themselves.
void freeze_parameters(Module& model, const Config& section) {
  const Config frozen = section.is_map() ? section.get("frozen") : Config();
  if (!frozen.is_null()) {
    at_position(frozen, [&] {
      model.freeze(frozen.is_scalar() ? std::vector<std::string>{frozen.as<std::string>()}
                                      : frozen.as<std::vector<std::string>>());
    });
  }
  const std::vector<ParameterPtr> all = model.parameters();
  if (std::ranges::any_of(all, [](const ParameterPtr& p) { return p->trainable; })) return;
  if (all.empty()) return;  // the optimizer says so
  (frozen.is_null() ? section : frozen)
      .error(
          "all parameters of the model are frozen, so there is nothing to train; leave some out "
          "of `frozen`, or take `trainable: false` off their layers");
}

// early_stopping and keep_best judge a model by held-out data, so they need some.
void require_validation(const Experiment& e) {
  const bool is_needed = e.train.checkpoint.keep_best || e.train.early_stopping;
  if (!is_needed || e.data.validation != nullptr) return;
  const Config train = e.config.get("train");
  const Config key = e.train.early_stopping ? train.get("early_stopping")
                                            : train.get("checkpoint").get("keep_best");
  key.error(
      "this needs a validation split, and there is none; hold one out with data.validation (a "
      "fraction such as 0.1, or a number of examples)");
}

// Activations are sparsified by the model itself; weights by an algorithm of their own.
void apply_sparsify(const Config& section, uint64_t seed, Sequential& model,
                    std::unique_ptr<SparsityAlgorithm>& weights) {
  const std::vector<SparsifyEntry> entries = sparsify_from_config(section, seed);
  for (size_t i = 0; i < entries.size(); ++i) {
    try {
      sparsify_activations(model, {entries[i]});
    } catch (const ConfigError& error) {
      section.items()[i].at("tensor").error(error.what());
    }
  }
  auto algorithm = sparsify_weights(entries);
  if (algorithm == nullptr) return;
  if (weights != nullptr) {
    section.error("weights are sparsified here and by `sparsity`; give them in one of both");
  }
  weights = std::move(algorithm);
}

// Sizes of the batches that a run will see, each once, and where the first of a size comes from.
std::map<int64_t, BatchOrigin> batch_sizes(const Experiment& e) {
  std::map<int64_t, BatchOrigin> sizes;
  const auto add = [&](int64_t examples, int64_t batch, const BatchOrigin& of, bool whole_only) {
    if (examples >= batch) sizes.emplace(batch, of);
    if (examples % batch == 0 || whole_only) return;
    sizes.emplace(examples % batch, BatchOrigin{"the last batch of " + of.name, of.key});
  };
  add(e.data.train->size(), e.train.batch_size, {"training", "train.batch_size"},
      e.train.drop_last);
  for (const auto& split : {e.data.validation, e.data.test}) {
    if (split == nullptr) continue;
    add(split->size(), e.train.eval_batch_size, {"evaluation", "train.eval_batch_size"}, false);
  }
  return sizes;
}

// Whether they and the memory take every batch is found out at once, not at an epoch's end.
void require_evaluations_fit(Experiment& e) {
  for (const auto& split : {e.data.validation, e.data.test}) {
    if (split != nullptr) require_evaluation_fits(*e.model, *split, e.train.eval_batch_size);
  }
  const Config sparsify = e.config.get("sparsify");
  if (sparsify.is_null() || sparsify.items().empty()) return;
  require_sparsifiers_fit(*e.model, sparsify, *e.data.train, batch_sizes(e));
}

// A norm learns nothing from one value a channel: that too is found out now.
void require_norms_fit(const Experiment& e) {
  const int64_t batch = e.train.batch_size;
  const bool has_last = batch > 1 && e.data.train->size() % batch == 1 && !e.train.drop_last &&
                        e.total_steps() >= e.steps_per_epoch();
  if (batch > 1 && !has_last) return;
  for (const ModuleRow& row : e.rows) {
    const auto* norm = dynamic_cast<const BatchNorm*>(row.module);
    if (norm == nullptr || !norm->needs_batch() || !row.input) continue;
    if (row.input->numel() > (*row.input)[0]) continue;
    e.config.at("train").error(fmt::format(
        "{} training {} of one example, and layer '{}' (batch_norm), which is given shape {} per "
        "example, needs more than one value a channel; {}",
        has_last ? "the last batch of an epoch of" : "the batches of", has_last ? "is" : "are",
        norm->path(), row.input->to_string(),
        has_last ? "give drop_last: true, or another batch_size" : "give a larger batch_size"));
  }
}

// An algorithm that does not fit the model is a mistake in the configuration.
void apply_sparsity(Experiment& e, DensityLimits csr_up_to) {
  const Config section = e.config.get(e.config.has("sparsity") ? "sparsity" : "sparsify");
  CompressionLimits& limits = e.sparsity->compression();
  limits.batch = e.train.batch_size;
  for (const auto& [parameter, uses] : uses_of_weights(e.rows)) {
    limits.rows[parameter] = std::llround(uses * static_cast<double>(e.train.batch_size));
  }
  limits.are_measured = e.parallel == nullptr;
  limits.compress_below = std::move(csr_up_to);
  try {
    e.sparsity->calibrate_on(calibration_data(e.data.train, e.train.seed, e.train.batch_size));
    e.model->apply(*e.sparsity);
  } catch (const ConfigError& error) {
    section.error(error.what());
  } catch (const ShapeError& error) {
    section.error(error.what());
  } catch (const MemoryError& error) {
    throw MemoryError(section.where() + ": " + error.what());
  }
  e.optimizer->apply(*e.sparsity);
  e.write_layouts();
}

// Of values that are all dense: none are made sparse, and none come with masks.
LayerCheck size_check(const Experiment& e, Start start) {
  const Config model = e.config.at("model");
  const Config masks = model.is_map() ? model.get("init_from") : Config();
  for (const Config& section : {masks, e.config.get("sparsity"), e.config.get("sparsify")}) {
    if (!section.is_null() || start != Start::Fresh) return {};
  }
  return [&layers = e.layers, memory = total_memory()](const Module& made, const ModelLayer& at) {
    require_layer_fits(made, at, layers, memory);
  };
}

}  // namespace

std::unique_ptr<Experiment> build_experiment(const Config& config, Start start,
                                             std::shared_ptr<Communicator> job) {
  register_builtins();
  require_known_sections(config);
  auto e = std::make_unique<Experiment>();
  e->config = config;
  if (!config.has("train")) e->config.set("train", Config::map());
  config.optional<std::string>("run_dir");
  e->train = TrainOptions::from_config(config.get("train"));
  config.get("train").require_all_read();
  require_shards(*e, job.get());
  require_division(*e, start, job.get());
  const Config model = config.at("model"), optimizer = config.at("optimizer");
  model_layers(model.clone());  // mistakes in it are told before data is read
  e->data = load_data_of(config, e->train.seed);
  e->loss = LossFunction::from_config(config, *e->data.train);
  if (const auto label = e->loss.ignored_label()) e->data = with_ignored_label(e->data, *label);
  e->loader = make_loader(*e, job.get());
  RunOrigins origins{.data = e->data.hashes,
                     .train_size = e->data.train->size(),
                     .columns = {.inputs = e->data.columns, .label = e->data.label_column}};
  e->loss.set_target_scale(e->data.target_std);
  if (!e->data.target_std.empty() && !e->loss.is_regression()) {
    config.at("data").get("normalize_targets").error("this goes with the loss mse alone");
  }
  require_mixable(*e);
  e->layers = model_layers(model, {.vocabulary_size = e->data.train->vocabulary_size(),
                                   .num_classes = e->loss.outputs(),
                                   .labels_tokens = e->loss.labels_tokens()});
  const ModelLayers& layers = e->layers;
  e->model = build_model(layers, e->data.train->example_shape(), size_check(*e, start));
  require_tokens_fit(model, *e->model, *e->data.train);
  e->loss.take_outputs(e->model->output_shape(e->data.train->example_shape()));
  require_output_fits(*e->model, layers, *e->data.train,
                      {.shape = e->loss.output_shape(),
                       .values = e->loss.outputs(),
                       .values_are = e->loss.outputs_are()});
  require_attention_fits(*e->model, layers, *e->data.train);
  e->teacher = load_teacher(*e, origins);
  e->origins = std::make_shared<const RunOrigins>(std::move(origins));
  freeze_parameters(*e->model, model);
  e->parallel = make_parallel(*e, job);
  e->model->initialize(e->train.seed);
  FirstValues first;
  if (start == Start::Fresh) first = load_first_values(e->config, *e->model, e->data);
  if (model.is_map()) model.get("init_from").mark_read();
  require_lengths_fit(*e->model, layers, e->data);
  e->rows = module_rows(*e->model, e->data.train->example_shape(), e->data.train->lengths());
  e->optimizer = make_optimizer(optimizer, e->model->parameters());
  require_learning_rates(optimizer, e->total_steps());
  if (start == Start::Fresh) {
    judge_warmup(optimizer, e->total_steps());
    judge_average(e->train, e->total_steps());
    write_calibration_defaults(e->config.get("sparsity"), *e->data.train, e->train.batch_size);
  }
  e->sparsity = configure(config.get("sparsity"), e->train.seed);
  apply_sparsify(config.get("sparsify"), e->train.seed, *e->model, e->sparsity);
  DensityLimits csr_up_to = read_density_limits(config, *e->model);
  config.get("convolution_algorithms").mark_read();
  config.require_all_read();
  require_validation(*e);
  if (e->sparsity != nullptr) apply_sparsity(*e, std::move(csr_up_to));
  // Before any value is drawn and anything is measured; a checkpoint's masks are not there yet.
  if (start == Start::Fresh) require_values_fit(*e->model, layers, total_memory());
  choose_algorithms(e->config, *e->model, e->train.batch_size,
                    e->parallel == nullptr ? Choice::Measured : Choice::Plain);
  first.add_mask_notes(*e->model, e->sparsity.get());
  e->notes = std::move(first.notes);
  e->warnings = std::move(first.warnings);
  if (e->train.ema)
    e->average = std::make_unique<WeightAverage>(*e->model, *e->train.ema, e->model->buffers());
  require_norms_fit(*e);
  require_evaluations_fit(*e);
  require_sentences_fit(*e->model, layers, e->data);
  return e;
}

}  // namespace lacuna
