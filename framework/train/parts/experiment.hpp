// Experiment: data, model, loss, optimizer and sparsity, built from one configuration.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "lacuna/framework/config/config.h"
#include "lacuna/framework/data/load_data.h"
#include "lacuna/framework/data/loader.h"
#include "lacuna/framework/distributed/data_parallel.hpp"
#include "lacuna/framework/io/checkpoint.h"
#include "lacuna/framework/model/model_layers.hpp"
#include "lacuna/framework/nn/module_rows.h"
#include "lacuna/framework/nn/sequential.h"
#include "lacuna/framework/train/loss_function.h"
#include "lacuna/framework/train/train_options.h"
#include "lacuna/framework/train/weight_average.hpp"
#include "lacuna/optimizers/optimizer.h"
#include "lacuna/sparsity/algorithm.h"

namespace lacuna {

struct RunOrigins;
class Parametrization;
class QuantizationAware;

/// What a resumed run does with data, or a teacher, that has changed since training.
enum class ChangedOrigins {
  Refused,
  Accepted,  ///< it continues with the present ones, from the same step
};

/// Everything that a training run works on. The members that others refer to come first, so that
/// they go last.
struct Experiment {
  Config config;  ///< resolved: every key that has a default has its value
  TrainOptions train;
  DataSplits data;
  std::unique_ptr<Loader> loader;  ///< over data.train
  /// Hashes of the data and of the teacher, which a resumed run must find again
  /// (train/checks/run_origins.hpp).
  std::shared_ptr<const RunOrigins> origins = {};
  std::unique_ptr<Sequential> model;
  ModelLayers layers;  ///< what the model was built of: where its layers are written
  /// The model as a table, for an example of the training data, the mean over their lengths: FLOPs
  /// are counted by it, and layouts chosen.
  std::vector<ModuleRow> rows;
  LossFunction loss;
  std::unique_ptr<Sequential> teacher;     ///< null, but for a loss of type distillation
  std::unique_ptr<DataParallel> parallel;  ///< null: batches are not cut into shards
  std::unique_ptr<Optimizer> optimizer;
  std::unique_ptr<SparsityAlgorithm> sparsity;       ///< null: dense training
  std::shared_ptr<Parametrization> parametrization;  ///< null: values and rates as they are written
  std::unique_ptr<WeightAverage> average;            ///< null: the weights themselves are evaluated
  /// Null: products run with the weights as they are (`quantize.algorithm: qat`).
  std::shared_ptr<QuantizationAware> quantization;
  bool is_trial = false;                   ///< Start::Trial
  std::string chosen = {};                 ///< defaults of a new run, in words, if any
  std::vector<std::string> notes = {};     ///< lines for the log, of `model.init_from`
  std::vector<std::string> warnings = {};  ///< the same, to be logged as warnings

  /// The processes that train it together; null where it is one.
  Communicator* communicator() const {
    return parallel == nullptr ? nullptr : parallel->communicator();
  }
  /// Whether this process writes the run's files, and reports what there is to report.
  bool is_first() const { return parallel == nullptr || parallel->rank() == 0; }

  int64_t steps_per_epoch() const;  ///< optimizer steps; the last may be of fewer batches
  int64_t total_steps() const;
  /// Examples trained on in the first steps, counted again in each epoch.
  int64_t examples_until(int64_t step) const;
  /// The sparsity algorithm's forecast for these steps; empty for dense training.
  /// *Errors:* ConfigError when that can only be a mistake; the plan of a trial is then empty.
  std::vector<PlannedParameter> plan() const;

  /// Values, gradients, optimizer states and averages must fit in the given bytes; activations come
  /// on top. *Errors:* MemoryError at the model.
  void require_training_fits(int64_t memory) const;

  /// Writes the densities by which `layout: auto` chooses into the configuration, those included
  /// that planning found for later phases. *Requires* sparsity.
  void write_layouts();

  /// The state of model, optimizer, sparsity, average and loader, the format of the inputs
  /// ("data"), and the hashes of data and teacher ("origins").
  StateDict state_dict() const;
  /// Restores model, optimizer, sparsity, average and loader from a run's checkpoint; each
  /// parameter in the layout it was saved in, unless the configuration names another. *Errors:*
  /// CheckpointError, also where data or teacher are others and `changed` refuses these. Other
  /// vocabularies, classes and orders of columns are never accepted: what the model learned has
  /// another meaning there.
  void load_state_dict(const StateDict& state, ChangedOrigins changed = ChangedOrigins::Refused);
  /// What of data and teacher is another than when a state was saved, in words.
  std::vector<std::string> changes_since(const StateDict& state) const;

  /// *Errors:* CheckpointError when the parts of a state are of different steps.
  void require_same_step(const StateDict& state) const;

  int64_t numel() const;  ///< parameters of the model, zeros included
  int64_t nnz() const;    ///< of these, in their masks, or dense
};

/// Where the model's values come from.
enum class Start {
  Fresh,      ///< drawn by the seed, or read from `model.init_from`
  Trial,      ///< the same, of a run whose length is not known yet: no schedule is refused for it
  Untrained,  ///< the same, of a model that is not trained here: gradients and states need not fit
  FromCheckpoint,  ///< a checkpoint is loaded next: `model.init_from` is not read again
};

using DataCheck = std::function<void(const DataSplits&)>;

/// Builds all parts (experiment_part.hpp), and checks that they fit each other and that every key
/// was understood: every command that builds an experiment makes the same checks. Nothing outside
/// of the experiment changes: `train.threads` and `train.layout_fallback` belong to the process;
/// the lacuna program sets them, and other programs may (`set_num_threads`, `set_fallback_policy`;
/// the number of threads first, because layouts are measured here). `job`: the processes that train
/// it together (train.shards); they must agree in data and first values. null: this one. Where
/// batches are cut into shards nothing is measured. `check_data`: receives the data before the
/// model is built for it, and throws if it is not as expected; none: all is accepted. *Errors:*
/// ConfigError, also for a plan that can only be a mistake; DataError; CheckpointError (of
/// `model.init_from`); MemoryError when the values of a fresh start, and what else
/// training holds, can never fit: before any is drawn.
std::unique_ptr<Experiment> build_experiment(const Config& config, Start start = Start::Fresh,
                                             std::shared_ptr<Communicator> job = nullptr,
                                             const DataCheck& check_data = {});

/// The configuration of the run that wrote a checkpoint; `path` is for messages. *Errors:*
/// CheckpointError when there is none, as in what `save_model` writes.
Config saved_config(const Checkpoint& checkpoint, const std::string& path);

/// A model with the values and masks of a saved state, or their averages if the configuration
/// has `train.ema` and the state has them, in evaluation mode, which takes inputs of
/// `example_shape`. *Errors:* CheckpointError when the state is of another model, ConfigError when
/// the layers do not fit the inputs.
std::unique_ptr<Sequential> restore_model(const Config& config, const StateDict& state,
                                          const Shape& example_shape);

/// The part that evaluating or predicting needs: what `restore_model` makes, its batch
/// normalizations folded into the weights before them (fold_batch_norm.hpp), so that it is neither
/// trained nor saved. *Errors:* those of `restore_model`.
std::unique_ptr<Sequential> rebuild_model(const Config& config, const StateDict& state,
                                          const Shape& example_shape);

}  // namespace lacuna
