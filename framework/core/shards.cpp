#include "lacuna/framework/core/shards.h"

#include <bit>

namespace lacuna {
namespace {

thread_local int64_t current = -1;

}  // namespace

ExampleRange shard_examples(int64_t shard, int64_t shards, int64_t examples) {
  // Not shard · examples / shards at once: the product may be too large.
  const auto begin = [&](int64_t s) {
    return examples / shards * s + examples % shards * s / shards;
  };
  return {begin(shard), begin(shard + 1) - begin(shard)};
}

int64_t current_shard() { return current; }

ShardScope::ShardScope(int64_t shard) : saved_(std::exchange(current, shard)) {}
ShardScope::~ShardScope() { current = saved_; }

std::vector<ShardNode> shard_nodes(int64_t begin, int64_t end) {
  std::vector<ShardNode> nodes;
  while (begin < end) {
    int level = 0;
    while (begin % (int64_t{2} << level) == 0 && begin + (int64_t{2} << level) <= end) ++level;
    nodes.push_back({level, begin >> level});
    begin += int64_t{1} << level;
  }
  return nodes;
}

void add_values(std::vector<double>& left, std::vector<double>&& right) {
  for (size_t i = 0; i < left.size(); ++i) left[i] += right[i];
}

namespace {

using ValuesSum = ShardSum<std::vector<double>, JoinValues>;

// Whether each process has a whole subtree of one size, and there are as many as the tree's level
// above has: neighbours join theirs, then pairs of neighbours, and so on.
bool are_pairs_all_the_way(const ValuesSum& own, int processes) {
  return own.parts().size() == 1 && std::has_single_bit(static_cast<unsigned>(processes));
}

// Both of a pair join the same two parts, the left one first.
std::vector<double> join_pairs(std::vector<double> values, JoinValues join, ShardPeers& peers) {
  for (int distance = 1; distance < peers.size(); distance *= 2) {
    const int other = peers.rank() ^ distance;
    std::vector<double> others(values.size());
    peers.swap(other, values, others);
    if (other < peers.rank()) std::swap(values, others);
    join(values, std::move(others));
  }
  return values;
}

}  // namespace

std::vector<double> join_shards(std::vector<ShardValues> own, JoinValues join, ShardPeers* peers) {
  ValuesSum sum(join);
  for (ShardValues& shard : own) sum.add({0, shard.shard}, std::move(shard.values));
  if (peers == nullptr) return sum.take();
  if (are_pairs_all_the_way(sum, peers->size())) return join_pairs(sum.take(), join, *peers);
  // Each part behind its node's level and index.
  std::vector<double> message;
  for (const auto& [first, part] : sum.parts()) {
    message.push_back(part.first.level);
    message.push_back(static_cast<double>(part.first.index));
    message.insert(message.end(), part.second.begin(), part.second.end());
  }
  const size_t size = sum.parts().begin()->second.second.size() + 2;
  ValuesSum all(join);
  for (const std::vector<double>& values : peers->gather(message)) {
    for (size_t at = 0; at + size <= values.size(); at += size) {
      const auto begin = values.begin() + static_cast<int64_t>(at);
      all.add({static_cast<int>(begin[0]), static_cast<int64_t>(begin[1])},
              {begin + 2, begin + static_cast<int64_t>(size)});
    }
  }
  return all.take();
}

}  // namespace lacuna
