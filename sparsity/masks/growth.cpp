#include "lacuna/sparsity/masks/growth.hpp"

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <numeric>
#include <utility>

#include "lacuna/framework/core/array.h"
#include "lacuna/framework/core/shards.h"
#include "lacuna/framework/kernels/select/topk.hpp"
#include "lacuna/sparsity/masks/group_counts.hpp"

namespace lacuna {
namespace {

// Offers whole rows of scores, from `first_row` on, each to its group's collector. Rows ascend
// from call to call.
void offer_rows(std::span<const float> scores, int64_t first_row, int64_t columns,
                const GroupIndex& groups, std::vector<TopKCollector>& collectors) {
  if (groups.count() == 1) {
    collectors[0].offer(scores, first_row * columns);
    return;
  }
  const auto run = static_cast<size_t>(groups.columns_of_one());  // of one group after the other
  for (size_t begin = 0; begin < scores.size(); begin += run) {
    const int64_t flat = first_row * columns + static_cast<int64_t>(begin);
    const int64_t group = groups.of(flat / columns, flat % columns);
    collectors[static_cast<size_t>(group)].offer(scores.subspan(begin, run), flat);
  }
}

// Where fewer of a group's positions have a score than are wanted, all that have one are chosen
// (ascending); the others' is NaN: appends the first of them.
void add_unscored(const Positions& present, const GroupIndex& groups, int64_t group, int64_t wanted,
                  std::vector<int64_t>& chosen) {
  if (static_cast<int64_t>(chosen.size()) >= wanted) return;
  const std::vector<int64_t> scored = chosen;
  for (int64_t place = 0; static_cast<int64_t>(chosen.size()) < wanted; ++place) {
    const int64_t flat = groups.flat(group, place);
    if (present.contains(flat) || std::ranges::binary_search(scored, flat)) continue;
    chosen.push_back(flat);
  }
}

std::vector<int64_t> rows_of_tile(int64_t tile, int64_t step, int64_t rows) {
  std::vector<int64_t> list(static_cast<size_t>(std::min(step, rows - tile * step)));
  std::iota(list.begin(), list.end(), tile * step);
  return list;
}

// Of a position that is there already: NaN is never collected.
constexpr float kPresent = std::numeric_limits<float>::quiet_NaN();

// Estimates from a sample of rows a threshold that about 1.5 times the wanted number of |scores|
// exceed; −1 for no threshold.
float guess(const Scores& scores, const Positions& present, const GroupIndex& groups,
            int64_t wanted) {
  constexpr int64_t kSampled = 16, kWorthIt = 256;
  constexpr size_t kSample = 4096;
  if (scores.processes() > 1 || groups.count() > 1 || present.rows() < kWorthIt) return -1.0f;
  std::vector<int64_t> rows;
  for (int64_t i = 0; i < kSampled; ++i) {
    rows.push_back((2 * i + 1) * present.rows() / (2 * kSampled));
  }
  const auto columns = static_cast<size_t>(present.columns());
  Array<float> all(columns * rows.size());
  scores.own_rows(std::span(&rows, 1), all);
  for (size_t i = 0; i < rows.size(); ++i) {
    for (const uint32_t column : present.row(rows[i])) all[i * columns + column] = kPresent;
  }
  std::vector<float> sample;
  for (size_t i = 0; i < all.size(); i += all.size() / kSample + 1) {
    if (!std::isnan(all[i])) sample.push_back(std::abs(all[i]));
  }
  const double free = static_cast<double>(groups.size() - present.count());
  const double share = 1.5 * static_cast<double>(wanted) / free;
  const auto rank = static_cast<size_t>(share * static_cast<double>(sample.size())) + 16;
  if (rank >= sample.size()) return -1.0f;
  const auto nth = sample.begin() + static_cast<int64_t>(rank);
  std::nth_element(sample.begin(), nth, sample.end(), std::greater<>());
  return *nth;
}

// The largest in this process's rows that are above `floor`, by group.
std::vector<TopKCollector> collect(const Scores& scores, const std::vector<int64_t>& wanted,
                                   const Positions& present, const GroupIndex& groups,
                                   float floor) {
  const int64_t rows = present.rows(), columns = present.columns();
  std::vector<TopKCollector> collectors;
  for (const int64_t k : wanted) collectors.emplace_back(k, floor);
  for_own_tiles(scores, rows, columns, tile_rows(rows, columns),
                [&](int64_t first, std::span<float> tile) {
                  for (int64_t r = 0; r * columns < static_cast<int64_t>(tile.size()); ++r) {
                    float* row = tile.data() + r * columns;
                    for (const uint32_t column : present.row(first + r)) row[column] = kPresent;
                  }
                  offer_rows(tile, first, columns, groups, collectors);
                });
  return collectors;
}

// Candidates of this process in a group: keys are |score| as bits, which order like the scores.
struct Candidates {
  std::vector<int64_t> positions;  // ascending
  std::span<const uint32_t> keys;
};

// All processes' numbers, added up place by place.
std::vector<int64_t> sums_of_all(ShardPeers& peers, std::span<const int64_t> own) {
  std::vector<int64_t> sums(own.size());
  for (const std::vector<int64_t>& other : peers.gather_numbers(own)) {
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
void find_last(ShardPeers& peers, const std::vector<Candidates>& own, std::vector<Last>& lasts) {
  constexpr size_t kDigits = 16;
  for (int shift = 28; shift >= 0 && !lasts.empty(); shift -= 4) {
    std::vector<int64_t> counts(kDigits * lasts.size());
    for (size_t i = 0; i < lasts.size(); ++i) {
      for (const uint32_t key : own[lasts[i].group].keys) {
        const bool is_within = shift == 28 || key >> (shift + 4) == lasts[i].key >> (shift + 4);
        if (is_within) ++counts[i * kDigits + (key >> shift & 15u)];
      }
    }
    const std::vector<int64_t> all = sums_of_all(peers, counts);
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
std::vector<int64_t> choose_of_all(ShardPeers& peers, const std::vector<Candidates>& own,
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
  find_last(peers, own, lasts);
  // Of equal ones the first: those of the processes before this one come before its own.
  std::vector<int64_t> equal;
  for (const Last& last : lasts)
    equal.push_back(std::ranges::count(own[last.group].keys, last.key));
  const std::vector<std::vector<int64_t>> others = peers.gather_numbers(equal);
  for (size_t i = 0; i < lasts.size(); ++i) {
    for (int p = 0; p < peers.rank(); ++p) lasts[i].ties -= others[static_cast<size_t>(p)][i];
    choose(own[lasts[i].group], lasts[i], chosen);
  }
  return chosen;
}

// What all processes add, by group, ascending: the largest of their candidates.
std::vector<std::vector<int64_t>> choose_together(ShardPeers& peers,
                                                  std::vector<TopKCollector>& collectors,
                                                  const std::vector<int64_t>& wanted,
                                                  const Positions& present,
                                                  const GroupIndex& groups) {
  std::vector<Candidates> own;
  std::vector<int64_t> sizes;
  for (TopKCollector& group : collectors) {
    std::vector<int64_t> positions = group.take();
    own.push_back({std::move(positions), group.keys()});
    sizes.push_back(group.size());
  }
  const std::vector<int64_t> totals = sums_of_all(peers, sizes);
  std::vector<int64_t> grown = gather_all(peers, choose_of_all(peers, own, wanted, totals));
  std::ranges::sort(grown);
  if (groups.count() == 1) return {std::move(grown)};
  std::vector<std::vector<int64_t>> by_group(wanted.size());
  for (const int64_t flat : grown) {
    const int64_t group = groups.of(flat / present.columns(), flat % present.columns());
    by_group[static_cast<size_t>(group)].push_back(flat);
  }
  return by_group;
}

}  // namespace

int64_t tile_rows(int64_t rows, int64_t columns) {
  constexpr int64_t kTile = int64_t{1} << 18, kMostRows = 256;
  // An eighth of a small matrix at most: nothing of its size is made.
  const int64_t most = std::min({kTile / std::max<int64_t>(columns, 1), kMostRows, rows / 8});
  return std::max<int64_t>(most, 1);
}

void for_own_tiles(const Scores& scores, int64_t rows, int64_t columns, int64_t step,
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

std::vector<int64_t> gather_all(ShardPeers& peers, std::span<const int64_t> own) {
  std::vector<int64_t> all;
  for (const std::vector<int64_t>& part : peers.gather_numbers(own)) {
    all.insert(all.end(), part.begin(), part.end());
  }
  return all;
}

namespace {

// The largest of each row, where each row is a group: what collectors would choose, without one for
// each row.
std::vector<std::vector<int64_t>> choose_in_rows(const Scores& scores,
                                                 const std::vector<int64_t>& wanted,
                                                 const Positions& present) {
  const int64_t columns = present.columns();
  std::vector<std::vector<int64_t>> chosen(wanted.size());
  std::vector<std::pair<float, int64_t>> free;  // −|score| and column
  for_own_tiles(scores, present.rows(), columns, tile_rows(present.rows(), columns),
                [&](int64_t first, std::span<float> tile) {
                  const auto width = static_cast<size_t>(columns);
                  const auto rows = static_cast<int64_t>(tile.size() / width);
                  for (int64_t row = first; row < first + rows; ++row) {
                    const std::span<float> of_row =
                        tile.subspan(static_cast<size_t>(row - first) * width, width);
                    for (const uint32_t column : present.row(row)) of_row[column] = kPresent;
                    free.clear();
                    for (int64_t c = 0; c < columns; ++c) {
                      const float score = of_row[static_cast<size_t>(c)];
                      if (!std::isnan(score)) free.emplace_back(-std::abs(score), c);
                    }
                    std::vector<int64_t>& own = chosen[static_cast<size_t>(row)];
                    const int64_t most = std::min<int64_t>(wanted[static_cast<size_t>(row)],
                                                           static_cast<int64_t>(free.size()));
                    std::partial_sort(free.begin(), free.begin() + most, free.end());
                    for (int64_t i = 0; i < most; ++i) {
                      own.push_back(row * columns + free[static_cast<size_t>(i)].second);
                    }
                    std::ranges::sort(own);
                  }
                });
  return chosen;
}

// By one collector for each group, of all processes.
std::vector<std::vector<int64_t>> choose_in_groups(const Scores& scores,
                                                   const std::vector<int64_t>& wanted,
                                                   const Positions& present,
                                                   const GroupIndex& groups) {
  const float floor = guess(scores, present, groups, wanted[0]);
  std::vector<TopKCollector> collectors = collect(scores, wanted, present, groups, floor);
  if (floor >= 0.0f && collectors[0].size() < wanted[0]) {  // guessed too high
    collectors = collect(scores, wanted, present, groups, -1.0f);
  }
  std::vector<std::vector<int64_t>> chosen;
  if (scores.processes() > 1) {
    chosen = choose_together(*scores.peers, collectors, wanted, present, groups);
  } else {
    for (TopKCollector& group : collectors) chosen.push_back(group.take());
  }
  return chosen;
}

}  // namespace

Positions grow_maximum(const Scores& scores, int64_t per_group, const Positions& present,
                       const GroupIndex& groups) {
  const std::vector<int64_t> wanted = missing(per_group, present, groups);
  if (std::ranges::all_of(wanted, [](int64_t n) { return n == 0; })) return present;
  const bool by_rows = groups.count() > 1 && groups.count() == present.rows() &&
                       groups.columns_of_one() == present.columns() && scores.processes() == 1;
  std::vector<std::vector<int64_t>> chosen =
      by_rows ? choose_in_rows(scores, wanted, present)
              : choose_in_groups(scores, wanted, present, groups);
  std::vector<int64_t> grown;
  for (size_t g = 0; g < wanted.size(); ++g) {
    add_unscored(present, groups, static_cast<int64_t>(g), wanted[g], chosen[g]);
    if (g == 0) {
      grown = std::move(chosen[g]);
    } else {
      grown.insert(grown.end(), chosen[g].begin(), chosen[g].end());
    }
  }
  return present.with(grown);
}

}  // namespace lacuna
