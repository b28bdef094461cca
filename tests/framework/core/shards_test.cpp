#include "lacuna/framework/core/shards.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <barrier>
#include <bit>
#include <cmath>
#include <cstdint>
#include <span>
#include <string>
#include <thread>
#include <vector>

namespace lacuna::shards_test {
namespace {

using testing::Each;
using testing::ElementsAre;

TEST(Shards, ExamplesAreCutWithoutGapsAndNoneIsEmptyWhereThereAreEnough) {
  for (const int64_t examples : {1, 7, 8, 19, 128, 1000003}) {
    for (const int64_t shards : {1, 3, 8, 64}) {
      int64_t next = 0;
      for (int64_t s = 0; s < shards; ++s) {
        const ExampleRange range = shard_examples(s, shards, examples);
        EXPECT_EQ(range.first, next);
        EXPECT_EQ(range.first, s * examples / shards);
        if (examples >= shards) {
          EXPECT_GT(range.count, 0);
        }
        next += range.count;
      }
      EXPECT_EQ(next, examples);
    }
  }
}

TEST(Shards, NodesAreTheLargestThatAreAligned) {
  EXPECT_THAT(shard_nodes(0, 8), ElementsAre(ShardNode{3, 0}));
  EXPECT_THAT(shard_nodes(4, 6), ElementsAre(ShardNode{1, 2}));
  EXPECT_THAT(shard_nodes(3, 6), ElementsAre(ShardNode{0, 3}, ShardNode{1, 2}));
  EXPECT_THAT(shard_nodes(0, 6), ElementsAre(ShardNode{2, 0}, ShardNode{1, 2}));
}

void join_texts(std::string& left, std::string&& right) { left = "(" + left + right + ")"; }
using TextSum = ShardSum<std::string, void (*)(std::string&, std::string&&)>;

std::string sum_in_order(const std::vector<int64_t>& order) {
  TextSum sum(join_texts);
  for (const int64_t shard : order) sum.add({0, shard}, std::to_string(shard));
  return sum.take();
}

TEST(Shards, SumHasOneOrderWhateverComesFirst) {
  EXPECT_EQ(sum_in_order({0, 1, 2, 3, 4, 5, 6, 7}), "(((01)(23))((45)(67)))");
  EXPECT_EQ(sum_in_order({7, 2, 5, 0, 3, 1, 4, 6}), "(((01)(23))((45)(67)))");
  EXPECT_EQ(sum_in_order({5, 4, 3, 2, 1, 0}), "(((01)(23))(45))");
  EXPECT_EQ(sum_in_order({6, 5, 4, 3, 2, 1, 0}), "((((01)(23))(45))6)");
}

// As processes do: each sums its range, and the parts are put together anywhere.
TEST(Shards, SumIsTheSameForAnyNumberOfProcesses) {
  for (const int64_t shards : {6, 8, 12, 24}) {
    std::vector<int64_t> all;
    for (int64_t s = 0; s < shards; ++s) all.push_back(s);
    const std::string expected = sum_in_order(all);
    for (int64_t processes = 1; processes <= shards; ++processes) {
      if (shards % processes != 0) continue;
      TextSum whole(join_texts);
      for (int64_t p = processes; p-- > 0;) {
        const int64_t begin = p * shards / processes, end = (p + 1) * shards / processes;
        TextSum part(join_texts);
        for (int64_t s = end; s-- > begin;) part.add({0, s}, std::to_string(s));
        const std::vector<ShardNode> nodes = shard_nodes(begin, end);
        ASSERT_EQ(part.parts().size(), nodes.size());
        size_t i = 0;
        for (const auto& [first, entry] : part.parts()) {
          EXPECT_EQ(entry.first, nodes[i++]);
          whole.add(entry.first, entry.second);
        }
      }
      EXPECT_EQ(whole.take(), expected) << processes << " processes, " << shards << " shards";
    }
  }
}

TEST(Shards, PartialSumsAreFewWhenShardsComeInOrder) {
  TextSum sum(join_texts);
  for (int64_t s = 63; s >= 0; --s) {
    sum.add({0, s}, "x");
    EXPECT_LE(sum.parts().size(), 6u);
  }
}

// What processes that are threads tell each other.
class Meeting {
 public:
  explicit Meeting(int processes) : values_(static_cast<size_t>(processes)), all_(processes) {}

  std::vector<std::vector<double>> meet(int rank, std::span<const double> own) {
    values_[static_cast<size_t>(rank)].assign(own.begin(), own.end());
    all_.arrive_and_wait();
    std::vector<std::vector<double>> seen = values_;
    all_.arrive_and_wait();
    return seen;
  }
  int size() const { return static_cast<int>(values_.size()); }

 private:
  std::vector<std::vector<double>> values_;
  std::barrier<> all_;
};

class Peer final : public ShardPeers {
 public:
  Peer(Meeting& meeting, int rank) : meeting_(meeting), rank_(rank) {}
  int rank() const override { return rank_; }
  int size() const override { return meeting_.size(); }
  std::vector<std::vector<double>> gather(std::span<const double> own) override {
    ++gathers;
    return meeting_.meet(rank_, own);
  }
  void swap(int other, std::span<const double> own, std::span<double> others) override {
    ++swaps;
    std::ranges::copy(meeting_.meet(rank_, own)[static_cast<size_t>(other)], others.begin());
  }

  std::vector<std::vector<int64_t>> gather_numbers(std::span<const int64_t>) override { return {}; }

  int gathers = 0, swaps = 0;

 private:
  Meeting& meeting_;
  int rank_;
};

// Sums of these depend on their order in the last digits.
std::vector<ShardValues> numbers_of(int64_t begin, int64_t end) {
  std::vector<ShardValues> numbers;
  for (int64_t s = begin; s < end; ++s) {
    const double x = static_cast<double>(s * 7919 % 31) + 0.1;
    numbers.push_back({s, {1.0 / x, std::exp(x / 3)}});
  }
  return numbers;
}

TEST(Shards, NumbersAreJoinedByAnyNumberOfProcesses) {
  for (const int64_t shards : {8, 12, 24}) {
    const std::vector<double> alone = join_shards(numbers_of(0, shards), add_values, nullptr);
    for (int processes = 2; processes <= shards; ++processes) {
      if (shards % processes != 0) continue;
      Meeting meeting(processes);
      std::vector<std::vector<double>> joined(static_cast<size_t>(processes));
      std::vector<Peer> peers;
      std::vector<std::thread> threads;
      for (int p = 0; p < processes; ++p) peers.emplace_back(meeting, p);
      for (int p = 0; p < processes; ++p) {
        threads.emplace_back([&, p] {
          const int64_t begin = p * shards / processes, end = (p + 1) * shards / processes;
          const auto place = static_cast<size_t>(p);
          joined[place] = join_shards(numbers_of(begin, end), add_values, &peers[place]);
        });
      }
      for (std::thread& thread : threads) thread.join();
      EXPECT_THAT(joined, Each(alone)) << processes << " processes, " << shards << " shards";
      // As few numbers as there can be, where each has a whole part of the tree.
      const bool are_pairs = std::has_single_bit(static_cast<uint64_t>(processes)) &&
                             std::has_single_bit(static_cast<uint64_t>(shards / processes));
      EXPECT_EQ(peers[0].gathers, are_pairs ? 0 : 1);
      EXPECT_EQ(peers[0].swaps, are_pairs ? std::countr_zero(static_cast<uint64_t>(processes)) : 0);
    }
  }
}

TEST(Shards, ScopesNest) {
  EXPECT_EQ(current_shard(), -1);
  const ShardScope outer(3);
  {
    const ShardScope inner(5);
    EXPECT_EQ(current_shard(), 5);
  }
  EXPECT_EQ(current_shard(), 3);
}

}  // namespace
}  // namespace lacuna::shards_test
