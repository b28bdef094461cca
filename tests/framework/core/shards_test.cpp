#include "lacuna/framework/core/shards.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>

namespace lacuna {
namespace {

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

// Two processes that know each other's numbers.
class TwoPeers final : public ShardPeers {
 public:
  explicit TwoPeers(std::vector<double> other) : other_(std::move(other)) {}
  std::vector<std::vector<double>> gather(std::span<const double> own) override {
    return {{own.begin(), own.end()}, other_};
  }

 private:
  std::vector<double> other_;
};

TEST(Shards, NumbersOfOtherProcessesAreJoined) {
  TwoPeers peers({1, 1, 10.0, 20.0});  // level 1, index 1: shards 2 and 3
  const std::vector<double> joined =
      join_shards({{1, {1.0, 2.0}}, {0, {3.0, 4.0}}}, add_values, &peers);
  EXPECT_THAT(joined, ElementsAre(14.0, 26.0));
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
}  // namespace lacuna
