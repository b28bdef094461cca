#include "lacuna/framework/nn/sharded_batch.h"

#include <algorithm>
#include <atomic>
#include <utility>

#include "lacuna/framework/nn/named_inputs.h"

namespace lacuna {
namespace {

thread_local const ShardedBatch* current = nullptr;
std::atomic<int64_t> next_number{0};

}  // namespace

ShardedBatch::ShardedBatch(std::vector<BatchShard> shards, ShardPeers* peers, NormScope norms)
    : shards_(std::move(shards)),
      peers_(peers),
      norms_(norms),
      number_(next_number++),
      saved_(std::exchange(current, this)) {}

ShardedBatch::~ShardedBatch() { current = saved_; }

const ShardedBatch* sharded_batch() { return current; }

namespace {

// While it lives, this thread computes a shard, and modules find its named inputs.
class OneShard {
 public:
  explicit OneShard(const BatchShard& shard)
      : scope_(shard.index), names_(shard.named == nullptr ? kNone : *shard.named) {}

 private:
  inline static const NamedTensors kNone = {};
  ShardScope scope_;
  NamedInputs names_;
};

}  // namespace

void for_each_shard(const std::function<void(size_t shard)>& compute) {
  const std::vector<BatchShard>& shards = sharded_batch()->shards();
  for (size_t i = 0; i < shards.size(); ++i) {
    const OneShard one(shards[i]);
    compute(i);
  }
}

int64_t first_example() {
  if (current == nullptr) return 0;
  const auto is_it = [](const BatchShard& shard) { return shard.index == current_shard(); };
  const auto found = std::ranges::find_if(current->shards(), is_it);
  return found == current->shards().end() ? 0 : found->examples.first;
}

int64_t DrawCounter::next() {
  if (sharded_batch() == nullptr || current_shard() < 0) return count_++;
  if (batch_ != sharded_batch()->number()) {
    batch_ = sharded_batch()->number();
    begin_ = count_;
    shard_ = -1;
  }
  if (std::exchange(shard_, current_shard()) != current_shard()) calls_ = 0;
  const int64_t number = begin_ + calls_++;
  count_ = std::max(count_, number + 1);
  return number;
}

void DrawCounter::set(int64_t count) {
  *this = {};
  count_ = count;
}

}  // namespace lacuna
