#include "lacuna/framework/data/loader.h"

#include <fmt/core.h>

#include <algorithm>
#include <condition_variable>
#include <deque>
#include <exception>
#include <mutex>
#include <numeric>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "lacuna/framework/core/error.h"
#include "lacuna/framework/core/plural.hpp"
#include "lacuna/framework/data/changes/epoch_order.hpp"
#include "lacuna/framework/data/changes/mixup.hpp"

namespace lacuna {
namespace {

// A place in the endless stream.
struct Position {
  int64_t epoch = 0;
  int64_t batch = 0;
};

// What of a stream is saved where it is not as usual: the entry, and its usual text.
struct Extra {
  const char* name;
  std::string usual;
};
std::vector<Extra> extras() {
  return {{"augment", AugmentOptions{}.to_string()}, {"sampling", "once"}};
}

std::string text_of(const StateDict& state, const Extra& extra) {
  return state.contains(extra.name) ? state.get<std::string>(extra.name) : extra.usual;
}

}  // namespace

// The dataset and the options, which do not change while batches are drawn, and the place of the
// next batch handed out.
class Loader::Stream {
 public:
  Stream(std::shared_ptr<const Dataset> dataset, LoaderOptions options)
      : dataset_(std::move(dataset)), options_(std::move(options)) {
    if (dataset_ == nullptr) throw StateError("a loader needs a dataset, found none");
    if (options_.batch_size < 1) {
      throw StateError(fmt::format("batch_size must be at least 1, found {}", options_.batch_size));
    }
    if (options_.prefetch < 0) {
      throw StateError(fmt::format("prefetch must be at least 0, found {}", options_.prefetch));
    }
    if (!dataset_->may_prefetch()) options_.prefetch = 0;
    const int64_t size = dataset_->size();
    if (size == 0) throw DataError("the dataset to draw batches from is empty");
    if (options_.last_batch == LastBatch::Drop && size < options_.batch_size) {
      throw DataError(
          fmt::format("a dataset of {} has no whole batch of {}; keep the last partial batch, or "
                      "make batch_size smaller",
                      plural(size, "example"), options_.batch_size));
    }
    const bool has_range = options_.first_shard >= 0 &&
                           options_.first_shard < options_.last_shard &&
                           options_.last_shard <= options_.shards;
    if (options_.shards < 0 || (options_.shards > 0 && !has_range)) {
      throw StateError(fmt::format("shards [{}, {}) of {} leave the loader nothing to draw",
                                   options_.first_shard, options_.last_shard, options_.shards));
    }
    require_augmentable(options_.augment, dataset_->example_shape());
    const size_t lengths = dataset_->lengths().size();
    if (lengths != 0 && lengths != static_cast<size_t>(size)) {
      throw StateError(fmt::format("a dataset of {} gives {}", plural(size, "example"),
                                   plural(static_cast<int64_t>(lengths), "length")));
    }
    if (options_.sampling == Sampling::Once) return;
    labels_ = all_labels(*dataset_);
    if (labels_.size() == static_cast<size_t>(size)) return;
    throw StateError(fmt::format(
        "balanced sampling needs a label for each of {} examples, found {}", size, labels_.size()));
  }

  const Dataset& dataset() const { return *dataset_; }
  const LoaderOptions& options() const { return options_; }
  Position position() const { return position_; }
  void seek(Position position) { position_ = position; }
  void advance() { position_ = after(position_); }

  int64_t batches_per_epoch() const {
    return count_batches(dataset_->size(), options_.batch_size, options_.last_batch);
  }

  Position after(Position position) const {
    if (++position.batch == batches_per_epoch()) position = {position.epoch + 1, 0};
    return position;
  }

  // The order that batches are drawn in; what draws them has one of its own.
  EpochOrder order() const {
    return EpochOrder({.size = dataset_->size(),
                       .batch_size = options_.batch_size,
                       .shuffle = options_.shuffle == Shuffle::EveryEpoch,
                       .seed = options_.seed,
                       .lengths = dataset_->lengths(),
                       .labels = labels_});
  }
  BatchShards draw(Position position, EpochOrder& order) const {
    const std::span<const int64_t> indices = order.batch(position.epoch, position.batch),
                                   places = order.places(position.epoch, position.batch);
    const AugmentStream stream{.seed = options_.seed,
                               .epoch = static_cast<uint64_t>(position.epoch)};
    const auto size = static_cast<int64_t>(indices.size());
    const int64_t shards = std::max<int64_t>(options_.shards, 1);
    BatchShards drawn{.size = size, .shards = std::min(shards, size), .drawn = {}};
    const bool draws_all = options_.shards == 0 || size < shards;
    const int64_t last = draws_all ? drawn.shards : options_.last_shard;
    for (int64_t s = draws_all ? 0 : options_.first_shard; s < last; ++s) {
      const ExampleRange range = shard_examples(s, drawn.shards, size);
      const auto part = [&](std::span<const int64_t> all) {
        return all.subspan(static_cast<size_t>(range.first), static_cast<size_t>(range.count));
      };
      drawn.drawn.push_back({.index = s,
                             .examples = range,
                             .batch = drawn_batch(part(indices), part(places), stream)});
    }
    return drawn;
  }

 private:
  // `places` are the numbers of the draws, by which they are changed at random.
  Batch drawn_batch(std::span<const int64_t> indices, std::span<const int64_t> places,
                    AugmentStream stream) const {
    Batch batch = changed(indices, places, stream);
    if (options_.augment.mixup > 0.0) mix_with_others(batch, places, stream);
    return batch;
  }

  Batch changed(std::span<const int64_t> indices, std::span<const int64_t> places,
                AugmentStream stream) const {
    Batch batch = dataset_->gather_for_training(indices, stream.seed, stream.epoch);
    if (options_.augment.changes_images()) {
      batch.inputs = augmented(batch.inputs, places, options_.augment, stream);
    }
    return batch;
  }

  void mix_with_others(Batch& batch, std::span<const int64_t> places, AugmentStream stream) const {
    const CounterRng rng(stream.seed, "mixup", stream.epoch);
    const std::vector<Mixture> mixtures =
        draw_mixtures(places, dataset_->size(), options_.augment.mixup, rng);
    std::vector<int64_t> others;
    for (const Mixture& mixture : mixtures) others.push_back(mixture.other);
    Batch other = changed(others, others, stream);
    mix(batch.inputs, other.inputs, mixtures);
    if (batch.targets.defined()) mix(batch.targets, other.targets, mixtures);
    if (!batch.labels.defined()) return;
    batch.other_labels = std::move(other.labels);
    for (const Mixture& mixture : mixtures) batch.own_shares.push_back(mixture.own_share);
  }

  std::shared_ptr<const Dataset> dataset_;
  LoaderOptions options_;
  std::vector<int64_t> labels_;  // for balanced sampling
  Position position_;
};

// Draws batches, on a thread of its own where options.prefetch > 0, from the stream's position on.
// Destroying it stops the thread after the batch it is at.
struct Loader::Prefetcher {
  explicit Prefetcher(const Stream& source)
      : stream(source), next(source.position()), order(source.order()) {
    if (stream.options().prefetch > 0) thread = std::thread([this] { run(); });
  }

  ~Prefetcher() {
    {
      const std::lock_guard lock(mutex);
      stopping = true;
    }
    has_room.notify_one();
    if (thread.joinable()) thread.join();
  }

  Prefetcher(const Prefetcher&) = delete;
  Prefetcher& operator=(const Prefetcher&) = delete;

  BatchShards take() {
    if (!thread.joinable()) {
      BatchShards batch = stream.draw(next, order);
      next = stream.after(next);
      return batch;
    }
    std::unique_lock lock(mutex);
    has_batch.wait(lock, [&] { return !queue.empty() || error != nullptr; });
    if (queue.empty()) std::rethrow_exception(error);
    BatchShards batch = std::move(queue.front());
    queue.pop_front();
    has_room.notify_one();
    return batch;
  }

  void run() {
    const auto depth = static_cast<size_t>(stream.options().prefetch);
    try {
      while (true) {
        {
          std::unique_lock lock(mutex);
          has_room.wait(lock, [&] { return stopping || queue.size() < depth; });
          if (stopping) return;
        }
        BatchShards batch = stream.draw(next, order);  // outside of the lock: this is the work
        next = stream.after(next);
        const std::lock_guard lock(mutex);
        queue.push_back(std::move(batch));
        has_batch.notify_one();
      }
    } catch (...) {
      const std::lock_guard lock(mutex);
      error = std::current_exception();
      has_batch.notify_one();
    }
  }

  const Stream& stream;
  // Touched by the drawing thread alone.
  Position next;
  EpochOrder order;
  // Guarded by the mutex.
  std::mutex mutex;
  std::condition_variable has_batch, has_room;
  std::deque<BatchShards> queue;
  std::exception_ptr error;
  bool stopping = false;
  std::thread thread;
};

Loader::Loader(std::shared_ptr<const Dataset> dataset, LoaderOptions options)
    : stream_(std::make_unique<Stream>(std::move(dataset), std::move(options))) {}

Loader::~Loader() = default;

Batch Loader::next() {
  if (stream_->options().shards > 0) {
    throw StateError("a loader of shards cannot return a whole batch");
  }
  return std::move(next_shards().drawn.front().batch);
}

BatchShards Loader::next_shards() {
  if (prefetcher_ == nullptr) prefetcher_ = std::make_unique<Prefetcher>(*stream_);
  try {
    BatchShards batch = prefetcher_->take();
    stream_->advance();
    return batch;
  } catch (...) {
    prefetcher_.reset();  // a later call starts again at the batch that failed
    throw;
  }
}

int64_t Loader::batches_per_epoch() const { return stream_->batches_per_epoch(); }
int64_t Loader::epoch() const { return stream_->position().epoch; }
int64_t Loader::batch_in_epoch() const { return stream_->position().batch; }
const Dataset& Loader::dataset() const { return stream_->dataset(); }

StateDict Loader::state() const {
  const LoaderOptions& options = stream_->options();
  StateDict state;
  state.set("epoch", epoch());
  state.set("batch", batch_in_epoch());
  state.set("seed", static_cast<int64_t>(options.seed));
  state.set("batch_size", options.batch_size);
  state.set("dataset_size", dataset().size());
  state.set("shuffle", static_cast<int64_t>(options.shuffle == Shuffle::EveryEpoch));
  state.set("drop_last", static_cast<int64_t>(options.last_batch == LastBatch::Drop));
  if (options.augment.any()) state.set("augment", options.augment.to_string());
  if (options.sampling == Sampling::Balanced) state.set("sampling", std::string("balanced"));
  return state;
}

void Loader::load_state(const StateDict& state) {
  const StateDict own = this->state();
  for (const char* name : {"dataset_size", "batch_size", "seed", "shuffle", "drop_last"}) {
    const auto saved = state.get<int64_t>(name), present = own.get<int64_t>(name);
    if (saved != present) {
      throw CheckpointError(
          fmt::format("the saved state of the data loader has {} {}, this loader has {}; a run can "
                      "only continue on the same data",
                      name, saved, present));
    }
  }
  for (const Extra& extra : extras()) {
    const std::string saved = text_of(state, extra), present = text_of(own, extra);
    if (saved == present) continue;
    throw CheckpointError(
        fmt::format("the saved state of the data loader has {} '{}', this loader has '{}'; a run "
                    "can only continue on the same data",
                    extra.name, saved, present));
  }
  const Position position{state.get<int64_t>("epoch"), state.get<int64_t>("batch")};
  if (position.epoch < 0 || position.batch < 0 || position.batch >= batches_per_epoch()) {
    throw CheckpointError(
        fmt::format("the saved state of the data loader is at batch {} of epoch {}; expected one "
                    "of {} batches of an epoch from 0",
                    position.batch, position.epoch, batches_per_epoch()));
  }
  prefetcher_.reset();
  stream_->seek(position);
}

void for_each_batch(const Dataset& dataset, int64_t batch_size,
                    const std::function<void(const Batch&)>& visit, EveryBatch which) {
  if (batch_size < 1) {
    throw StateError(fmt::format("batch_size must be at least 1, found {}", batch_size));
  }
  std::vector<int64_t> indices;
  for (int64_t begin = which.place * batch_size; begin < dataset.size();
       begin += which.of * batch_size) {
    indices.resize(static_cast<size_t>(std::min(batch_size, dataset.size() - begin)));
    std::iota(indices.begin(), indices.end(), begin);
    visit(dataset.gather(indices));
  }
}

}  // namespace lacuna
