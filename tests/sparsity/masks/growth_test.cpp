// Growth by scores that processes share chooses what one process chooses.
#include "lacuna/sparsity/masks/growth.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <barrier>
#include <cmath>
#include <limits>
#include <memory>
#include <optional>
#include <thread>
#include <vector>

#include "lacuna/sparsity/masks/mask_selector.h"

namespace lacuna::growth_test {
namespace {

// Threads that stand for processes.
class Meeting {
 public:
  explicit Meeting(int processes) : barrier_(processes), numbers_(static_cast<size_t>(processes)) {}

  std::vector<std::vector<int64_t>> gather(int rank, std::span<const int64_t> own) {
    numbers_[static_cast<size_t>(rank)].assign(own.begin(), own.end());
    barrier_.arrive_and_wait();
    std::vector<std::vector<int64_t>> all = numbers_;
    barrier_.arrive_and_wait();
    return all;
  }

 private:
  std::barrier<> barrier_;
  std::vector<std::vector<int64_t>> numbers_;
};

// One process's view; notes the most elements that were asked for at once, of all processes
// together, and what it would send: the scores of others' rows, and its numbers.
class Process final : public ShardPeers {
 public:
  Process(Meeting& meeting, int rank, int processes, const ScoreRows& scores, int64_t columns)
      : meeting_(meeting), rank_(rank), processes_(processes), scores_(scores), columns_(columns) {}

  int rank() const override { return rank_; }
  int size() const override { return processes_; }
  std::vector<std::vector<double>> gather(std::span<const double>) override { return {}; }
  void swap(int, std::span<const double>, std::span<double>) override {}
  Scores scores() {
    return {[this](auto rows, std::span<float> into) { own_rows(rows, into); }, *this};
  }
  void own_rows(std::span<const std::vector<int64_t>> rows, std::span<float> into) {
    int64_t asked = 0;
    uint64_t hash = 0;
    for (size_t p = 0; p < rows.size(); ++p) {
      const auto elements = static_cast<int64_t>(rows[p].size()) * columns_;
      asked += elements;
      if (static_cast<int>(p) != rank_) sent += 4 * elements;
      for (const int64_t row : rows[p]) hash = hash * 31 + static_cast<uint64_t>(row) + 1;
    }
    most_at_once = std::max(most_at_once, asked);
    const auto sum = static_cast<int64_t>(hash);
    // All ask for the same, or they would wait for each other for ever.
    for (const std::vector<int64_t>& other : meeting_.gather(rank_, std::vector{sum})) {
      EXPECT_EQ(other[0], sum);
    }
    scores_(rows[static_cast<size_t>(rank_)], into);
  }
  std::vector<std::vector<int64_t>> gather_numbers(std::span<const int64_t> own) override {
    sent += 8 * static_cast<int64_t>(own.size()) * (processes_ - 1);
    return meeting_.gather(rank_, own);
  }

  int64_t most_at_once = 0, sent = 0;

 private:
  Meeting& meeting_;
  int rank_, processes_;
  const ScoreRows& scores_;
  int64_t columns_;
};

struct Grown {
  MaskSet mask;
  int64_t most_at_once = 0, sent = 0;
};

// What each of so many processes grows.
std::vector<Grown> grow(const MaskSelector& selector, int processes, const ScoreRows& scores,
                        int64_t count, const MaskSet& present) {
  Meeting meeting(processes);
  std::vector<std::optional<Grown>> grown(static_cast<size_t>(processes));
  std::vector<std::thread> threads;
  for (int p = 0; p < processes; ++p) {
    threads.emplace_back([&, p] {
      Process process(meeting, p, processes, scores, matrix_columns(selector.shape()));
      MaskSet mask = selector.grow_maximum(process.scores(), count, present);
      grown[static_cast<size_t>(p)] = Grown{std::move(mask), process.most_at_once, process.sent};
    });
  }
  for (std::thread& thread : threads) thread.join();
  std::vector<Grown> all;
  for (std::optional<Grown>& one : grown) all.push_back(std::move(*one));
  return all;
}

struct Case {
  const char* name;
  Shape shape;
  ScoreGroups groups = {};
  PatternShape pattern = {};
};

const std::vector<Case>& cases() {
  static const std::vector<Case> all = {
      {"flat", Shape{64, 33}},
      {"few_rows", Shape{3, 50}},
      {"convolution", Shape{16, 8, 3, 3}},
      {"rows_in_groups", Shape{24, 20}, ScoreGroups::rows(6)},
      {"each_row_a_group", Shape{30, 11}, ScoreGroups::rows(30)},
      {"columns_in_groups", Shape{20, 24}, ScoreGroups::columns(4)},
      {"blocks", Shape{64, 48}, {}, PatternShape::block(4, 4)},
      {"wide_blocks", Shape{30, 64}, {}, PatternShape::block(2, 16)},
      {"blocks_of_a_convolution", Shape{16, 8, 3, 3}, {}, PatternShape::block(4, 2)},
      {"2_of_4", Shape{20, 32}, {}, PatternShape::nm(2, 4)},
      {"1_of_8", Shape{13, 64}, {}, PatternShape::nm(1, 8)},
      {"2_of_4_of_a_convolution", Shape{6, 8, 3, 3}, {}, PatternShape::nm(2, 4)}};
  return all;
}

// Few different scores, so that there are ties, and some that are NaN.
Tensor scores_of(const Shape& shape, uint32_t one_in_is_nan) {
  const CounterRng rng(5, "scores");
  Tensor scores = Tensor::empty(shape);
  const std::span<float> values = scores.mutable_storage();
  for (size_t i = 0; i < values.size(); ++i) {
    values[i] = static_cast<float>(rng.bits(2 * i) % 23) - 11.0f;
    if (rng.bits(2 * i + 1) % one_in_is_nan == 0) {
      values[i] = std::numeric_limits<float>::quiet_NaN();
    }
  }
  return scores;
}

TEST(SharedGrowth, ChoosesWhatOneProcessChooses) {
  for (const Case& c : cases()) {
    const MaskSelector selector(c.groups, c.pattern, c.shape);
    const MaskSet none = MaskSet(c.shape, Positions(c.shape));
    const int64_t unit = c.pattern.unit_size() * c.groups.count;
    const auto whole = [&](double share) {
      return static_cast<int64_t>(share * static_cast<double>(c.shape.numel())) / unit * unit;
    };
    const MaskSet full = selector.grow_random(CounterRng(3, "present"), whole(0.3), none);
    std::vector<float> any(static_cast<size_t>(full.count()));
    for (size_t i = 0; i < any.size(); ++i) any[i] = CounterRng(4, "keep").uniform(i);
    const MaskSet present = selector.keep(full, any, whole(0.1));
    for (const uint32_t one_in_is_nan : {50u, 2u}) {
      const ScoreRows scores = rows_of(scores_of(c.shape, one_in_is_nan));
      for (const double share : {0.0, 0.1, 0.15, 0.5, 0.9, 1.0}) {
        const MaskSet expected = selector.grow_maximum(scores, whole(share), present);
        for (const int processes : {2, 3, 8}) {
          for (const Grown& grown : grow(selector, processes, scores, whole(share), present)) {
            EXPECT_EQ(grown.mask, expected) << c.name << ", " << share << ", " << processes;
          }
        }
      }
    }
  }
}

// Each sends its part of the scores once, whatever competes, and little else but what it grows;
// nothing whole is made.
TEST(SharedGrowth, SendsEachScoreOnceByTiles) {
  for (const Case& c :
       std::vector<Case>{{"flat", Shape{512, 1024}},
                         {"blocks", Shape{4096, 1024}, {}, PatternShape::block(16, 16)},
                         {"1_of_8", Shape{512, 1024}, {}, PatternShape::nm(1, 8)},
                         {"rows_in_groups", Shape{512, 1024}, ScoreGroups::rows(512)},
                         {"columns_in_groups", Shape{512, 1024}, ScoreGroups::columns(4)}}) {
    const MaskSelector selector(c.groups, c.pattern, c.shape);
    const MaskSet none = MaskSet(c.shape, Positions(c.shape));
    const ScoreRows scores = rows_of(scores_of(c.shape, 1000));
    const int64_t numel = c.shape.numel();
    for (const int processes : {2, 4}) {
      for (const Grown& grown : grow(selector, processes, scores, numel / 64, none)) {
        const int64_t once = 4 * numel * (processes - 1) / processes;
        const int64_t units = 8 * grown.mask.count() / c.pattern.unit_size() * (processes - 1);
        EXPECT_GE(grown.sent, once) << c.name;
        EXPECT_LE(grown.sent, once + once / 16 + units) << c.name;
        EXPECT_LE(grown.most_at_once, std::min(numel / 8, int64_t{1} << 18) * processes) << c.name;
      }
    }
  }
}

}  // namespace
}  // namespace lacuna::growth_test
