// The batches of an experiment: the loader, the shards they are cut into, and the processes that
// share these.
#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <map>
#include <string>
#include <vector>

#include "lacuna/framework/config/names.h"
#include "lacuna/framework/core/error.h"
#include "lacuna/framework/core/input_checks.hpp"
#include "lacuna/framework/io/shell_word.hpp"
#include "lacuna/framework/job/job.hpp"
#include "lacuna/framework/train/checks/causality_check.hpp"
#include "lacuna/framework/train/checks/model_checks.hpp"
#include "lacuna/framework/train/checks/sparsifier_checks.hpp"
#include "lacuna/framework/train/evaluation.h"
#include "lacuna/framework/train/parts/experiment_part.hpp"

namespace lacuna {
namespace {

// Under `fast` each process has one shard.
int64_t shards_of(const TrainOptions& train, const Communicator* job) {
  if (train.shards == 0 || train.reduction == Reduction::Exact) return train.shards;
  return job == nullptr ? 1 : job->size();
}

// Several processes need shards to share.
void require_shards(const Experiment& e, const Communicator* job) {
  if (job == nullptr || job->size() == 1 || e.train.shards > 0) return;
  e.config.get("train").get("shards").error(fmt::format(
      "{} processes were started, but shards: 0 needs exactly one. Continue such a run without a "
      "launcher (lacuna train --resume --run-dir {}); in a new run leave shards out, or give a "
      "multiple of {}",
      job->size(), shell_word(e.config.optional<std::string>("run_dir").value_or("RUN")),
      job->size()));
}

void require_division(const Experiment& e, Start start, const Communicator* job) {
  if (job == nullptr || e.train.shards == 0 || e.train.reduction == Reduction::Fast) return;
  try {
    require_processes_divide(e.train.shards, job->size());
  } catch (const ConfigError& error) {
    const char* or_else = start == Start::FromCheckpoint ? " (a resumed run keeps its shards)"
                                                         : ", or give another number of shards";
    e.config.get("train").get("shards").error(error.what() + std::string(or_else));
  }
}

void read_batches(ExperimentBuild& b) {
  require_shards(b.e, b.job.get());
  require_division(b.e, b.start, b.job.get());
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

// Without whole batches there is nothing to train on. On resuming, the data has become smaller.
void require_whole_batch(const ExperimentBuild& b) {
  const TrainOptions& train = b.e.train;
  const int64_t size = b.e.data.train->size();
  if (!b.is_fresh() || !train.drop_last || size >= train.batch_size) return;
  b.e.config.get("train")
      .get("drop_last")
      .error(fmt::format(
          "a dataset of {} examples has no whole batch of {}; keep the last partial batch "
          "(drop_last: false), or make batch_size smaller",
          size, train.batch_size));
}

void build_batches(ExperimentBuild& b) {
  const TrainOptions& train = b.e.train;
  require_whole_batch(b);
  const int64_t shards = shards_of(train, b.job.get());
  const int64_t processes = b.job == nullptr ? 1 : b.job->size(),
                rank = b.job == nullptr ? 0 : b.job->rank();
  b.e.loader = std::make_unique<Loader>(
      b.e.data.train,
      LoaderOptions{.batch_size = train.batch_size,
                    .shuffle = Shuffle::EveryEpoch,
                    .last_batch = train.drop_last ? LastBatch::Drop : LastBatch::Keep,
                    .seed = train.seed,
                    .prefetch = train.prefetch,
                    .shards = shards,
                    .first_shard = rank * shards / processes,
                    .last_shard = (rank + 1) * shards / processes,
                    .augment = b.e.data.augment,
                    .sampling = b.e.data.sampling});
  b.e.parallel = make_parallel(b.e, b.job);
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

// Whether the model, the sparsifiers and the memory take every batch is found out now, not at an
// epoch's end.
void try_batches(Experiment& e) {
  for (const auto& split : {e.data.validation, e.data.test}) {
    if (split != nullptr) require_evaluation_fits(*e.model, *split, e.train.eval_batch_size);
  }
  const Config sparsify = e.config.get("sparsifiers");
  if (!sparsify.is_null() && !sparsify.items().empty()) {
    require_sparsifiers_fit(*e.model, sparsify, *e.data.train, batch_sizes(e));
  }
  require_sentences_fit(*e.model, e.layers, e.data);
}

uint64_t hash_of(const Module& model) {
  uint64_t hash = kEmptyHash;
  for (const ParameterPtr& parameter : model.parameters()) {
    hash = hash_values(parameter->values().storage(), {}, hash);
  }
  return hash;
}

std::string hash_of(const std::optional<DataHash>& split) {
  return split ? fmt::format("{:x}", joined_hash(split->inputs, split->answers)) : "none";
}

// Data that one node has and another has not, or another version of it, ends up as other numbers
// of examples, or other examples; and whoever draws other weights would train another model.
void require_same_start(Communicator& job, const Experiment& e, const RunOrigins& origins) {
  std::vector<std::string> sizes;
  for (const auto& split : {e.data.train, e.data.validation, e.data.test}) {
    sizes.push_back(fmt::format("{}", split == nullptr ? 0 : split->size()));
  }
  const SplitHashes& data = e.data.hashes;
  const std::array hashes{hash_of(data.train), hash_of(data.validation), hash_of(data.test)};
  const std::array<Agreed, 4> what = {
      {{"their data: examples to train, validate and test on", join(sizes, ", ")},
       {"their data: what is in examples to train, validate and test on",
        "hashes " + join(hashes, ", ")},
       {"the model's first values", fmt::format("hash {:x}", hash_of(*e.model))},
       {"the values of the teacher (loss.teacher)",
        fmt::format("hash {:x}", origins.teacher ? origins.teacher->hash : 0)}}};
  require_agreement(job, what);
}

// Sparsifiers and grids of activations may choose by the values of all tokens.
bool changes_activations(const Config& config) {
  const Config sparsify = config.get("sparsifiers");
  return (sparsify.is_list() && !sparsify.items().empty()) || config.get("quantize").is_map();
}

void finish_batches(ExperimentBuild& b) {
  try_batches(b.e);
  if (b.is_fresh() && !changes_activations(b.e.config)) {
    require_causality(*b.e.model, b.e.layers, *b.e.data.train);
  }
  if (b.job != nullptr) require_same_start(*b.job, b.e, b.origins);
}

}  // namespace

ExperimentPart batches_part() {
  return {.read = read_batches, .build = build_batches, .finish = finish_batches};
}

}  // namespace lacuna
