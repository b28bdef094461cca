// TrainOptions: the `train` section of a configuration.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "lacuna/framework/config/config.h"
#include "lacuna/framework/layouts/dense_fallback.h"

namespace lacuna {

/// More steps than any training takes.
inline constexpr int64_t kMaxSteps = int64_t{1} << 53;

/// A time in training: a number of optimizer steps, or of epochs. In a configuration "500 steps",
/// "1 epoch", "2 epochs", or an integer (steps).
struct Period {
  int64_t count = 0;
  bool in_epochs = false;

  static Period steps(int64_t count) { return {count, false}; }
  static Period epochs(int64_t count) { return {count, true}; }
  /// The key's value, or `fallback`, which is written into the configuration. *Errors:*
  /// ConfigError.
  static Period from_config(const Config& map, const char* key, Period fallback);
  /// At most kMaxSteps. `steps_per_epoch` is at least 1.
  int64_t in_steps(int64_t steps_per_epoch) const;
  std::string to_string() const;
};

struct EarlyStoppingOptions {
  int64_t patience = 5;    ///< evaluations without improvement before training stops, at least 1
  double min_delta = 0.0;  ///< smallest change that counts as improvement, in units of the metric
};

struct WeightAverageOptions {
  double decay = 0.999;  ///< of the previous average, at each step, in [0, 1)
  int64_t start = 0;     ///< steps after which averaging begins, at least 0
};

/// The text that a language model writes at evaluations.
struct SampleOptions {
  std::string prompt;    ///< the text to continue; not empty
  int64_t tokens = 100;  ///< how many follow, from 1 to 10,000
};

struct CheckpointOptions {
  Period every = Period::epochs(1);
  int64_t keep_last = 3;  ///< newest checkpoints kept, at least 1
  /// Also keep the best by validation accuracy (or loss) as best.h5. In a configuration the default
  /// is true with early stopping.
  bool keep_best = false;
};

/// Whether sums over a batch's shards are the same for any number of processes.
enum class Reduction {
  Exact,  ///< `train.shards` shards, one after the other, in their tree
  Fast,   ///< each process's examples in one pass: fewer, larger products; last digits differ
};

/// The examples that batch normalization uses while shards are trained.
enum class NormBatch {
  Synchronized,  ///< the whole batch
  Local,         ///< the examples of the process: results depend on how many there are
};

struct TrainOptions {
  /// How long to train: epochs (default 10), or optimizer steps.
  Period length = Period::epochs(10);
  int64_t batch_size = 128;
  /// Parts that each batch is cut into, which processes share (docs/guides/cluster.md). 0: none,
  /// one process alone. The default is 8 under a launcher of MPI programs, else 0. At most 4096.
  int64_t shards = 0;
  Reduction reduction = Reduction::Exact;
  NormBatch batch_norm = NormBatch::Synchronized;
  int64_t accumulate = 1;  ///< batches whose gradients make one optimizer step
  bool drop_last = false;  ///< leave out an epoch's last partial batch
  uint64_t seed = 0;
  int threads = 0;   ///< of the process, at most 1024; 0: all cores
  int prefetch = 2;  ///< batches prepared ahead on a background thread, at most 1024; 0: none
  int64_t eval_batch_size = 1000;
  Period eval_every = Period::epochs(1);
  Period log_every = Period::steps(100);
  /// If a layout lacks a product: make the weight dense for it, or stop with an error. Set for the
  /// whole process.
  FallbackPolicy layout_fallback = FallbackPolicy::Dense;
  bool tensorboard = false;  ///< write TensorBoard's event files too (docs/reference/run-folder.md)
  bool trace_autograd = false;  ///< log the nodes of the first step's backward pass
  CheckpointOptions checkpoint;
  std::optional<EarlyStoppingOptions> early_stopping;
  std::optional<SampleOptions> sample;      ///< none: no text is written
  std::optional<WeightAverageOptions> ema;  ///< none: the weights themselves are evaluated

  /// Writes the defaults of absent keys into `train`. *Errors:* ConfigError on a wrong type or
  /// range.
  static TrainOptions from_config(const Config& train);
};

/// *Errors:* ConfigError at an unknown section, with the nearest name.
void require_known_sections(const Config& config);
/// Checks the keys of `optimizer` and `sparsity`, without the data. *Errors:* ConfigError at an
/// unknown key, with the nearest name; other errors are reported later.
void require_known_keys(const Config& config, uint64_t seed);

/// *Errors:* ConfigError at the schedule of a learning rate, the optimizer's or a group's, that is
/// negative or not finite in one of the run's steps. Of a run of 10,000 steps or more, the first,
/// the last, and less than 10,000 between them, at even distances, are checked.
void require_learning_rates(const Config& optimizer, int64_t steps);

/// Checks the `warmup` of an `optimizer` section for a run of this many steps: warns if the rate
/// never reaches its full value. *Errors:* ConfigError if it stays close to 0.
void warn_about_warmup(const Config& optimizer, int64_t steps);
/// Warns if schedules make all learning rates 0 in the last tenth of the run's steps, or in all of
/// [from, steps), so that these train nothing. *Cost:* a million values of each schedule at most.
void warn_about_rates_of_zero(const Config& optimizer, int64_t from, int64_t steps);
/// The same as `warn_about_warmup` for `train.ema`: warns if it begins after the end of the run.
void warn_about_average(const TrainOptions& train, int64_t steps);
/// Finds `search: greedy` of a transposable pattern, which is read as `exact`: warns, and returns
/// true, at the first one.
bool warn_about_greedy_search(const Config& config);

}  // namespace lacuna
