// Loader: an endless, restartable stream of batches over a dataset.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "lacuna/framework/config/state_dict.h"
#include "lacuna/framework/core/shards.h"
#include "lacuna/framework/data/changes/augment.h"
#include "lacuna/framework/data/dataset.h"
#include "lacuna/framework/data/sampling.h"

namespace lacuna {

enum class Shuffle {
  None,        ///< the dataset's own order in every epoch
  EveryEpoch,  ///< a new order each epoch, a pure function of (seed, epoch); if examples have
               ///< lengths (Dataset::lengths), a batch has similar ones
};

enum class LastBatch {
  Keep,  ///< the last batch of an epoch has the remaining examples, and may be smaller
  Drop,  ///< all batches are whole; the remaining examples are left out in this epoch
};

/// Number of batches of the given examples.
inline int64_t count_batches(int64_t examples, int64_t batch_size, LastBatch last_batch) {
  return (examples + (last_batch == LastBatch::Keep ? batch_size - 1 : 0)) / batch_size;
}

struct LoaderOptions {
  /// Examples in a batch. ≥ 1, default 128.
  int64_t batch_size = 128;
  /// Default: a new order each epoch, for training.
  Shuffle shuffle = Shuffle::EveryEpoch;
  /// Default: keep. Use drop if every batch must have the same weight.
  LastBatch last_batch = LastBatch::Keep;
  /// Seed of the orders, default 0.
  uint64_t seed = 0;
  /// Batches that a background thread prepares ahead, default 2; 0: none, and no thread. It only
  /// affects speed. Always 0 if the dataset forbids it (Dataset::may_prefetch).
  int prefetch = 2;
  /// Parts that each batch is cut into (core/shards.h), for `next_shards`, and which of them are
  /// drawn: [first_shard, last_shard). Default 0: batches are whole. They do not affect which
  /// examples make up a batch.
  int64_t shards = 0;
  int64_t first_shard = 0, last_shard = 0;
  /// Random changes to the images of each batch, made where it is gathered (on the background
  /// thread, if there is one). The changes of an example are a pure function of (seed, epoch, its
  /// index in the dataset). Default: none.
  AugmentOptions augment = {};
  /// How often an epoch draws each example. Default: once.
  Sampling sampling = Sampling::Once;
};

/// Shards of one batch.
struct BatchShards {
  struct Shard {
    int64_t index = 0;  ///< among the batch's shards
    ExampleRange examples;
    Batch batch;
  };
  int64_t size = 0;    ///< examples of the whole batch
  int64_t shards = 0;  ///< that it is cut into: the options', or for a smaller batch its size
  std::vector<Shard> drawn;

  bool is_whole() const { return static_cast<int64_t>(drawn.size()) == shards; }
};

/// Returns batches, epoch after epoch, without end. Used by one thread at a time.
class Loader {
 public:
  /// *Errors:* StateError on a null dataset, on options out of range, if the dataset's number of
  /// lengths differs from its number of examples, or if `sampling` needs a label for each example
  /// and some have none; DataError when the dataset is empty, or smaller than one batch with
  /// `LastBatch::Drop`, or `augment` does not fit its examples.
  explicit Loader(std::shared_ptr<const Dataset> dataset, LoaderOptions options = {});
  ~Loader();
  Loader(const Loader&) = delete;
  Loader& operator=(const Loader&) = delete;

  /// The next batch. After the last one of an epoch comes the first one of the next. *Errors:*
  /// StateError if the options have shards; whatever the dataset's gather throws, at the batch
  /// where it does, also if that happened on the background thread; a later call tries that batch
  /// again.
  Batch next();
  /// The next batch's shards that the options ask for; all of them if the batch has fewer examples
  /// than there are shards, so that each has one. *Errors:* as `next`.
  BatchShards next_shards();

  int64_t batches_per_epoch() const;
  /// Epoch of the batch that next() gives, from 0, and that batch's index in its epoch. After the
  /// last batch of epoch 0 they are 1 and 0.
  int64_t epoch() const;
  int64_t batch_in_epoch() const;
  const Dataset& dataset() const;

  /// The position in the stream, and its options. Batches that were prefetched but not yet returned
  /// do not count. Entries: epoch, batch, seed, batch_size, dataset_size, shuffle, drop_last;
  /// augment (text), if there is any; sampling (text), if it is balanced.
  StateDict state() const;
  /// Continues where `state` was saved: the batches that follow are bit-identical. *Errors:*
  /// CheckpointError if the state belongs to another stream (names what differs) or is not within
  /// an epoch; the loader is then unchanged.
  void load_state(const StateDict& state);

 private:
  struct Prefetcher;
  class Stream;

  std::unique_ptr<Stream> stream_;
  std::unique_ptr<Prefetcher> prefetcher_;  // started by the first next() that needs it
};

/// Selects the batch at `place` of each `of` batches, for one of several processes. *Requires* 0 ≤
/// place < of.
struct EveryBatch {
  int64_t place = 0;
  int64_t of = 1;
};

/// Calls `visit` with all examples in order, `batch_size` at a time (the last batch may be
/// smaller), or with the selected ones of these batches: for evaluation. *Errors:* StateError
/// unless batch_size ≥ 1.
void for_each_batch(const Dataset& dataset, int64_t batch_size,
                    const std::function<void(const Batch&)>& visit, EveryBatch which = {});

}  // namespace lacuna
