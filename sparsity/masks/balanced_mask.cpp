#include "lacuna/sparsity/masks/balanced_mask.hpp"

#include <algorithm>
#include <numeric>
#include <utility>
#include <vector>

#include "lacuna/framework/kernels/select/draws.hpp"
#include "lacuna/sparsity/options/group_count.hpp"

namespace lacuna {
namespace {

// Fisher and Yates's shuffle.
template <class T>
void shuffle(Draws& draws, std::vector<T>& values) {
  for (size_t last = values.size(); last > 1; --last) {
    std::swap(values[last - 1], values[draws.below(last)]);
  }
}

// A shuffled deck of some columns, without end: it is shuffled again when all have been dealt.
class Deck {
 public:
  Deck(Draws& draws, uint32_t first, uint32_t size)
      : draws_(draws), first_(first), cards_(size), held_by_(size, 0) {
    std::iota(cards_.begin(), cards_.end(), 0u);
    next_ = cards_.size();
  }

  // Appends `count` different columns, at most all there are.
  void deal(size_t count, std::vector<uint32_t>& hand) {
    ++dealt_;
    const size_t rest = cards_.size() - next_;
    take(std::min(count, rest), hand);
    if (count <= rest) return;
    shuffle(draws_, cards_);
    next_ = 0;
    // Columns that this hand holds already give way to the next that it does not.
    const size_t missing = count - rest;
    for (size_t i = 0, other = missing; i < missing; ++i) {
      if (!is_held(cards_[i])) continue;
      while (is_held(cards_[other])) ++other;
      std::swap(cards_[i], cards_[other++]);
    }
    take(missing, hand);
  }

 private:
  bool is_held(uint32_t card) const { return held_by_[card] == dealt_; }
  void take(size_t count, std::vector<uint32_t>& hand) {
    for (; count > 0; --count) {
      const uint32_t card = cards_[next_++];
      held_by_[card] = dealt_;
      hand.push_back(first_ + card);
    }
  }

  Draws& draws_;
  uint32_t first_;
  std::vector<uint32_t> cards_;
  std::vector<uint32_t> held_by_;  // by card: the last hand that it went to
  size_t next_ = 0;
  uint32_t dealt_ = 0;  // hands
};

// Of `total` things dealt out evenly over `count` receivers, those of the first `n`.
int64_t share(int64_t total, int64_t n, int64_t count) {
  return total / count * n + total % count * n / count;
}

}  // namespace

Positions balanced_mask(const CounterRng& rng, const Shape& shape, int64_t nnz,
                        const ScoreGroups& groups) {
  const int64_t rows = matrix_rows(shape), columns = matrix_columns(shape);
  if (nnz == 0) return Positions(shape);
  const bool by_columns = groups.along == ScoreGroups::Along::Columns;
  const int64_t decks = by_columns ? count_of_groups(groups, shape) : 1;
  Draws draws(rng);
  std::vector<Deck> deck;
  for (int64_t d = 0; d < decks; ++d) {
    deck.emplace_back(draws, static_cast<uint32_t>(d * (columns / decks)),
                      static_cast<uint32_t>(columns / decks));
  }
  std::vector<int64_t> row_begin{0};
  row_begin.reserve(static_cast<size_t>(rows) + 1);
  std::vector<uint32_t> column;
  column.reserve(static_cast<size_t>(nnz));
  for (int64_t row = 0; row < rows; ++row) {
    const int64_t begin = row_begin.back(), end = share(nnz, row + 1, rows);
    // Position n of the matrix comes from deck n modulo the decks.
    for (int64_t d = 0; d < decks; ++d) {
      const int64_t count = (end + decks - 1 - d) / decks - (begin + decks - 1 - d) / decks;
      deck[static_cast<size_t>(d)].deal(static_cast<size_t>(count), column);
    }
    std::sort(column.begin() + begin, column.end());
    row_begin.push_back(end);
  }
  return Positions(shape, std::move(row_begin), std::move(column));
}

namespace {

std::vector<int64_t> empty_rows(const Positions& positions) {
  std::vector<int64_t> empty;
  for (int64_t r = 0; r < positions.rows(); ++r) {
    if (positions.row(r).empty()) empty.push_back(r);
  }
  return empty;
}

std::vector<int64_t> empty_channels(const Positions& positions, int64_t taps) {
  const int64_t channels = positions.columns() / taps;
  std::vector<char> used(static_cast<size_t>(channels));
  for (const uint32_t column : positions.column()) used[static_cast<size_t>(column / taps)] = 1;
  std::vector<int64_t> empty;
  for (int64_t c = 0; c < channels; ++c) {
    if (used[static_cast<size_t>(c)] == 0) empty.push_back(c);
  }
  return empty;
}

// Positions that each group may still take.
std::vector<int64_t> room_in_groups(int64_t per_group, const Positions& kept,
                                    const GroupIndex& groups) {
  std::vector<int64_t> room(static_cast<size_t>(groups.count()), per_group);
  if (groups.count() == 1) return {per_group - kept.count()};
  kept.for_each([&](int64_t flat) {
    --room[static_cast<size_t>(groups.of(flat / kept.columns(), flat % kept.columns()))];
  });
  return room;
}

}  // namespace

Positions revive_empty(const CounterRng& rng, int64_t per_group, const Positions& kept,
                       const GroupIndex& groups, int64_t taps) {
  if (kept.rows() == 0 || kept.columns() == 0) return kept;
  std::vector<int64_t> rows = empty_rows(kept), channels = empty_channels(kept, taps);
  Draws draws(rng);
  shuffle(draws, rows);
  shuffle(draws, channels);
  std::vector<int64_t> room = room_in_groups(per_group, kept, groups);
  std::vector<int64_t> added;
  // Each has a row or a channel of its own, so that no two are the same.
  for (size_t i = 0; i < std::max(rows.size(), channels.size()); ++i) {
    const auto any = [&](int64_t count) {
      return static_cast<int64_t>(draws.below(static_cast<uint64_t>(count)));
    };
    const int64_t row = i < rows.size() ? rows[i] : any(kept.rows());
    int64_t column = 0;
    if (i >= channels.size()) {
      column = any(kept.columns());
    } else {
      column = taps == 1 ? channels[i] : channels[i] * taps + any(taps);
    }
    int64_t& left = room[static_cast<size_t>(groups.of(row, column))];
    if (left <= 0) continue;
    --left;
    added.push_back(row * kept.columns() + column);
  }
  return kept.with(added);
}

}  // namespace lacuna
