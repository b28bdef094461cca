// Shards: the parts of a batch, and the tree in which their results are summed.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <utility>
#include <vector>

namespace lacuna {

/// Examples first, …, first + count − 1 of a batch.
struct ExampleRange {
  int64_t first = 0;
  int64_t count = 0;
};

/// The examples of a shard: [s n / S, (s + 1) n / S), rounded down. With at least as many examples
/// as shards none is empty. *Requires* 0 ≤ shard < shards.
ExampleRange shard_examples(int64_t shard, int64_t shards, int64_t examples);

/// The shard that this thread computes for; −1: none.
int64_t current_shard();

/// While it exists, this thread computes for a shard: nodes that it records and gradients that it
/// delivers belong to that shard.
class ShardScope {
 public:
  explicit ShardScope(int64_t shard);
  ~ShardScope();
  ShardScope(const ShardScope&) = delete;
  ShardScope& operator=(const ShardScope&) = delete;

 private:
  int64_t saved_;
};

/// A node of the tree: the shards [index · 2^level, (index + 1) · 2^level).
struct ShardNode {
  int level = 0;
  int64_t index = 0;

  int64_t first() const { return index << level; }
  friend bool operator==(const ShardNode&, const ShardNode&) = default;
};

/// The largest nodes that shards [begin, end) consist of, in their order: a process that has these
/// shards can sum them without the others. One node where `end − begin` is a power of two that
/// divides `begin`.
std::vector<ShardNode> shard_nodes(int64_t begin, int64_t end);

/// A sum over shards whose order does not depend on when they are added, nor by which thread: two
/// neighbours are joined as soon as both are there; if the number of shards is not a power of two,
/// the rest is joined from the left at the end. `Join` adds a right part to a left one: join(T&
/// left, T&& right). *Memory:* log₂ of the number of shards, if they are added in order.
template <class T, class Join>
class ShardSum {
 public:
  explicit ShardSum(Join join) : join_(std::move(join)) {}

  void add(ShardNode node, T value) {
    while (true) {
      const bool is_left = node.index % 2 == 0;
      const auto other = parts_.find((node.index ^ 1) << node.level);
      if (other == parts_.end() || other->second.first.level != node.level) break;
      T there = std::move(other->second.second);
      parts_.erase(other);
      if (is_left) {
        join_(value, std::move(there));
      } else {
        join_(there, std::move(value));
        value = std::move(there);
      }
      node = {node.level + 1, node.index / 2};
    }
    parts_.emplace(node.first(), std::pair(node, std::move(value)));
  }

  bool empty() const { return parts_.empty(); }
  /// Parts that are not joined yet, ascending by shard.
  const std::map<int64_t, std::pair<ShardNode, T>>& parts() const { return parts_; }
  /// Returns the unjoined parts, ascending by shard, and removes them.
  std::vector<T> take_parts() {
    std::vector<T> taken;
    for (auto& [first, part] : parts_) taken.push_back(std::move(part.second));
    parts_.clear();
    return taken;
  }
  /// Joins all parts, and removes them. *Requires* that something was added.
  T take() {
    auto part = parts_.begin();
    T total = std::move(part->second.second);
    for (++part; part != parts_.end(); ++part) join_(total, std::move(part->second.second));
    parts_.clear();
    return total;
  }

 private:
  Join join_;
  std::map<int64_t, std::pair<ShardNode, T>> parts_;  // by first shard
};

/// The processes that share the shards of a batch: process p of N has the shards p S / N to
/// (p + 1) S / N of S. All processes must make the same calls, in the same order.
class ShardPeers {
 public:
  virtual ~ShardPeers() = default;
  virtual int rank() const = 0;
  virtual int size() const = 0;
  /// Each process's values, in the processes' order, those of this one among them. *Cost:* the time
  /// of ⌈log₂ N⌉ messages; in total, the values of the other processes are sent N − 1 times.
  virtual std::vector<std::vector<double>> gather(std::span<const double> own) = 0;
  /// Exchanges values with another process, which makes the same call with this one's rank. *Cost:*
  /// the time of one message.
  virtual void swap(int other, std::span<const double> own, std::span<double> others) = 0;
  /// Each process's numbers, by rank. Counted as sent.
  virtual std::vector<std::vector<int64_t>> gather_numbers(std::span<const int64_t> own) = 0;
};

/// A shard's numbers.
struct ShardValues {
  int64_t shard = 0;
  std::vector<double> values;
};
/// Adds the right part to the left one.
using JoinValues = void (*)(std::vector<double>& left, std::vector<double>&& right);
/// left += right.
void add_values(std::vector<double>& left, std::vector<double>&& right);

/// Joins the numbers of all shards in the tree, including those of other processes if there are
/// peers. All processes get the same result. *Requires* at least one shard in each process. *Cost:*
/// ⌈log₂ N⌉ messages, one after the other; each has the size of one shard's numbers if the numbers
/// of processes and of their shards are powers of two.
std::vector<double> join_shards(std::vector<ShardValues> own, JoinValues join, ShardPeers* peers);

}  // namespace lacuna
