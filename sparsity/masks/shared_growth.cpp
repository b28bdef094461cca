#include "lacuna/sparsity/masks/shared_growth.hpp"

#include <algorithm>
#include <iterator>
#include <limits>
#include <numeric>
#include <utility>

#include "lacuna/framework/core/array.h"
#include "lacuna/framework/core/shards.h"
#include "lacuna/framework/kernels/select/topk.hpp"
#include "lacuna/sparsity/masks/group_collectors.hpp"
#include "lacuna/sparsity/masks/group_counts.hpp"

namespace lacuna {
namespace {

// Candidates of this process in a group: keys are |score| as bits, which order like the scores.
struct Candidates {
  std::vector<int64_t> positions;  // ascending
  std::vector<uint32_t> keys;
};

std::vector<int64_t> rows_of_tile(int64_t tile, int64_t step, int64_t rows) {
  std::vector<int64_t> list(static_cast<size_t>(std::min(step, rows - tile * step)));
  std::iota(list.begin(), list.end(), tile * step);
  return list;
}

// The largest in this process's rows, by group.
std::vector<Candidates> collect(SharedScores& scores, const std::vector<int64_t>& wanted,
                                const Positions& present, const GroupIndex& groups) {
  const int64_t rows = present.rows(), columns = present.columns();
  std::vector<TopKCollector> collectors;
  for (const int64_t k : wanted) collectors.emplace_back(k);
  for_own_tiles(scores, rows, columns, tile_rows(rows, columns),
                [&](int64_t first, std::span<float> tile) {
                  for (int64_t r = 0; r * columns < static_cast<int64_t>(tile.size()); ++r) {
                    for (const uint32_t column : present.row(first + r)) {
                      tile[static_cast<size_t>(r * columns + column)] =
                          std::numeric_limits<float>::quiet_NaN();  // is never collected
                    }
                  }
                  offer_rows(tile, first, columns, groups, collectors);
                });
  std::vector<Candidates> candidates(wanted.size());
  for (size_t g = 0; g < wanted.size(); ++g) {
    candidates[g].positions = collectors[g].take();
    candidates[g].keys.assign(collectors[g].keys().begin(), collectors[g].keys().end());
  }
  return candidates;
}

// All processes' numbers, added up place by place.
std::vector<int64_t> sums_of_all(SharedScores& scores, std::span<const int64_t> own) {
  std::vector<int64_t> sums(own.size());
  for (const std::vector<int64_t>& other : scores.gather(own)) {
    for (size_t i = 0; i < sums.size(); ++i) sums[i] += other[i];
  }
  return sums;
}

// The key of the last candidate, of all processes', that stays in a group, and how many with that
// key stay.
struct Last {
  size_t group = 0;
  uint32_t key = 0;
  int64_t ties = 0;
};

// Finds the keys four bits after four from above (16 counts to send each time: eight bits would
// take fewer messages, of eight times as much altogether). `lasts` come in with the groups, and how
// many are wanted of them as `ties`.
void find_last(SharedScores& scores, const std::vector<Candidates>& own, std::vector<Last>& lasts) {
  constexpr size_t kDigits = 16;
  for (int shift = 28; shift >= 0 && !lasts.empty(); shift -= 4) {
    std::vector<int64_t> counts(kDigits * lasts.size());
    for (size_t i = 0; i < lasts.size(); ++i) {
      for (const uint32_t key : own[lasts[i].group].keys) {
        const bool is_within = shift == 28 || key >> (shift + 4) == lasts[i].key >> (shift + 4);
        if (is_within) ++counts[i * kDigits + (key >> shift & 15u)];
      }
    }
    const std::vector<int64_t> all = sums_of_all(scores, counts);
    for (size_t i = 0; i < lasts.size(); ++i) {
      const int64_t* of_digit = all.data() + i * kDigits;
      uint32_t digit = 15;
      while (digit > 0 && of_digit[digit] < lasts[i].ties) lasts[i].ties -= of_digit[digit--];
      lasts[i].key |= digit << shift;
    }
  }
}

// Appends those of this process's candidates that stay.
void choose(const Candidates& own, Last last, std::vector<int64_t>& chosen) {
  for (size_t i = 0; i < own.keys.size(); ++i) {
    const bool stays = own.keys[i] > last.key || (own.keys[i] == last.key && last.ties-- > 0);
    if (stays) chosen.push_back(own.positions[i]);
  }
}

// The positions that this process adds: `totals` are all processes' candidates, by group.
std::vector<int64_t> choose_of_all(SharedScores& scores, const std::vector<Candidates>& own,
                                   const std::vector<int64_t>& wanted,
                                   const std::vector<int64_t>& totals) {
  std::vector<int64_t> chosen;
  std::vector<Last> lasts;
  for (size_t g = 0; g < own.size(); ++g) {
    if (totals[g] > wanted[g]) {
      lasts.push_back({.group = g, .ties = wanted[g]});
    } else {
      chosen.insert(chosen.end(), own[g].positions.begin(), own[g].positions.end());
    }
  }
  if (lasts.empty()) return chosen;
  find_last(scores, own, lasts);
  // Of equal ones the first: those of the processes before this one come before its own.
  std::vector<int64_t> equal;
  for (const Last& last : lasts)
    equal.push_back(std::ranges::count(own[last.group].keys, last.key));
  const std::vector<std::vector<int64_t>> others = scores.gather(equal);
  for (size_t i = 0; i < lasts.size(); ++i) {
    for (int p = 0; p < scores.rank(); ++p) lasts[i].ties -= others[static_cast<size_t>(p)][i];
    choose(own[lasts[i].group], lasts[i], chosen);
  }
  return chosen;
}

}  // namespace

int64_t tile_rows(int64_t rows, int64_t columns) {
  constexpr int64_t kTile = int64_t{1} << 18, kMostRows = 256;
  // An eighth of a small matrix at most: nothing of its size is made.
  const int64_t most = std::min({kTile / std::max<int64_t>(columns, 1), kMostRows, rows / 8});
  return std::max<int64_t>(most, 1);
}

void for_own_tiles(SharedScores& scores, int64_t rows, int64_t columns, int64_t step,
                   const std::function<void(int64_t first, std::span<float> tile)>& visit) {
  const int64_t tiles = (rows + step - 1) / step, processes = scores.processes();
  std::vector<ExampleRange> tiles_of;
  int64_t rounds = 0;
  for (int64_t p = 0; p < processes; ++p) {
    tiles_of.push_back(shard_examples(p, processes, tiles));
    rounds = std::max(rounds, tiles_of.back().count);
  }
  Array<float> tile;
  for (int64_t round = 0; round < rounds; ++round) {
    std::vector<std::vector<int64_t>> asked;
    for (const ExampleRange& range : tiles_of) {
      asked.push_back(round < range.count ? rows_of_tile(range.first + round, step, rows)
                                          : std::vector<int64_t>());
    }
    const std::vector<int64_t>& own = asked[static_cast<size_t>(scores.rank())];
    tile.resize(own.size() * static_cast<size_t>(columns));
    scores.own_rows(asked, tile);
    if (!own.empty()) visit(own.front(), tile);
  }
}

std::vector<int64_t> gather_all(SharedScores& scores, std::span<const int64_t> own) {
  std::vector<int64_t> all;
  for (const std::vector<int64_t>& part : scores.gather(own)) {
    all.insert(all.end(), part.begin(), part.end());
  }
  return all;
}

Positions grow_maximum(SharedScores& scores, int64_t per_group, const Positions& present,
                       const GroupIndex& groups) {
  const std::vector<int64_t> wanted = missing(per_group, present, groups);
  if (std::ranges::all_of(wanted, [](int64_t n) { return n == 0; })) return present;
  const std::vector<Candidates> own = collect(scores, wanted, present, groups);
  std::vector<int64_t> sizes;
  for (const Candidates& group : own) sizes.push_back(static_cast<int64_t>(group.keys.size()));
  const std::vector<int64_t> totals = sums_of_all(scores, sizes);
  std::vector<int64_t> grown = gather_all(scores, choose_of_all(scores, own, wanted, totals));
  std::ranges::sort(grown);
  const std::vector<int64_t> scored = grown;
  for (size_t g = 0; g < wanted.size(); ++g) {
    if (totals[g] >= wanted[g]) continue;
    const auto group = static_cast<int64_t>(g);
    std::vector<int64_t> part;
    std::ranges::copy_if(scored, std::back_inserter(part), [&](int64_t flat) {
      return groups.count() == 1 ||
             groups.of(flat / present.columns(), flat % present.columns()) == group;
    });
    const auto there = static_cast<int64_t>(part.size());
    add_unscored(present, groups, group, wanted[g], part);
    grown.insert(grown.end(), part.begin() + there, part.end());
  }
  return present.with(grown);
}

}  // namespace lacuna
