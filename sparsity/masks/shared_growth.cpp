#include "lacuna/sparsity/masks/shared_growth.hpp"

#include <algorithm>
#include <array>
#include <limits>
#include <numeric>
#include <utility>

#include "lacuna/framework/core/array.h"
#include "lacuna/framework/core/shards.h"
#include "lacuna/framework/kernels/select/topk.h"

namespace lacuna {
namespace {

// Candidates of this process: keys are |score| as bits, which order like the scores.
struct Candidates {
  std::vector<int64_t> positions;  // ascending
  std::vector<uint32_t> keys;
};

std::vector<int64_t> rows_of_tile(int64_t tile, int64_t step, int64_t rows) {
  std::vector<int64_t> list(static_cast<size_t>(std::min(step, rows - tile * step)));
  std::iota(list.begin(), list.end(), tile * step);
  return list;
}

// The largest in this process's tiles. All processes go through theirs side by side, for each
// needs the others' part of its scores.
Candidates collect(SharedScores& scores, int64_t wanted, const Positions& present) {
  const int64_t rows = present.rows(), columns = present.columns();
  const int64_t step = tile_rows(rows, columns), tiles = (rows + step - 1) / step;
  const int64_t processes = scores.processes();
  std::vector<ExampleRange> tiles_of;
  int64_t rounds = 0;
  for (int64_t p = 0; p < processes; ++p) {
    tiles_of.push_back(shard_examples(p, processes, tiles));
    rounds = std::max(rounds, tiles_of.back().count);
  }
  TopKCollector collector(wanted);
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
    for (size_t i = 0; i < own.size(); ++i) {
      float* row = tile.data() + static_cast<int64_t>(i) * columns;
      for (const uint32_t column : present.row(own[i])) {
        row[column] = std::numeric_limits<float>::quiet_NaN();  // is never collected
      }
    }
    if (!own.empty()) collector.offer(tile, own.front() * columns);
  }
  Candidates candidates;
  candidates.positions = collector.take();
  candidates.keys.assign(collector.keys().begin(), collector.keys().end());
  return candidates;
}

// The key of the last candidate, of all processes', that stays, found four bits after four from
// above (16 counts to send each time: eight bits would take fewer messages, of eight times as much
// altogether); and how many with that key stay.
struct Last {
  uint32_t key = 0;
  int64_t ties = 0;
};

Last last_of_all(SharedScores& scores, const Candidates& own, int64_t wanted) {
  uint32_t prefix = 0;
  int64_t missing = wanted;
  for (int shift = 28; shift >= 0; shift -= 4) {
    std::vector<int64_t> counts(16);
    for (const uint32_t key : own.keys) {
      const bool is_within = shift == 28 || key >> (shift + 4) == prefix >> (shift + 4);
      if (is_within) ++counts[key >> shift & 15u];
    }
    std::array<int64_t, 16> all{};
    for (const std::vector<int64_t>& other : scores.gather(counts)) {
      for (size_t i = 0; i < all.size(); ++i) all[i] += other[i];
    }
    uint32_t digit = 15;
    while (digit > 0 && all[digit] < missing) missing -= all[digit--];
    prefix |= digit << shift;
  }
  return {prefix, missing};
}

}  // namespace

int64_t tile_rows(int64_t rows, int64_t columns) {
  constexpr int64_t kTile = int64_t{1} << 18, kMostRows = 256;
  // An eighth of a small matrix at most: nothing of its size is made.
  const int64_t most = std::min({kTile / std::max<int64_t>(columns, 1), kMostRows, rows / 8});
  return std::max<int64_t>(most, 1);
}

Positions grow_maximum(SharedScores& scores, int64_t count, const Positions& present) {
  const int64_t size = present.rows() * present.columns();
  const int64_t wanted = std::max<int64_t>(std::min(count, size) - present.count(), 0);
  if (wanted == 0) return present;
  const Candidates own = collect(scores, wanted, present);
  int64_t candidates = 0;
  std::vector<int64_t> own_size{static_cast<int64_t>(own.keys.size())};
  for (const std::vector<int64_t>& other : scores.gather(own_size)) candidates += other[0];
  std::vector<int64_t> chosen;
  if (candidates <= wanted) {
    chosen = own.positions;
  } else {
    const Last last = last_of_all(scores, own, wanted);
    // Of equal ones the first: those of the processes before this one come before its own.
    std::vector<int64_t> equal{std::ranges::count(own.keys, last.key)};
    int64_t ties = last.ties;
    const std::vector<std::vector<int64_t>> others = scores.gather(equal);
    for (int p = 0; p < scores.rank(); ++p) ties -= others[static_cast<size_t>(p)][0];
    for (size_t i = 0; i < own.keys.size(); ++i) {
      const bool stays = own.keys[i] > last.key || (own.keys[i] == last.key && ties-- > 0);
      if (stays) chosen.push_back(own.positions[i]);
    }
  }
  std::vector<int64_t> grown;
  for (const std::vector<int64_t>& part : scores.gather(chosen)) {
    grown.insert(grown.end(), part.begin(), part.end());
  }
  // Where fewer positions have a score than are wanted: the first of those whose score is NaN.
  const std::vector<int64_t> scored = grown;
  for (int64_t flat = 0; static_cast<int64_t>(grown.size()) < wanted; ++flat) {
    if (present.contains(flat) || std::ranges::binary_search(scored, flat)) continue;
    grown.push_back(flat);
  }
  std::ranges::sort(grown);
  return present.with(grown);
}

}  // namespace lacuna
