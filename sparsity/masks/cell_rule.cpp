#include "lacuna/sparsity/masks/cell_rule.hpp"

#include <bit>
#include <cmath>
#include <vector>

#include "lacuna/framework/kernels/nm/nm_selection_reference.hpp"
#include "lacuna/framework/kernels/select/kth_largest.hpp"

namespace lacuna {
namespace {

constexpr CellBits kRow = 0x000f, kColumn = 0x1111;  // of a tile of 4×4

// At most two units in each row and column.
bool is_two_by_four(CellBits tile) {
  for (int i = 0; i < 4; ++i) {
    if (std::popcount(static_cast<CellBits>(tile & kRow << 4 * i)) > 2) return false;
    if (std::popcount(static_cast<CellBits>(tile & kColumn << i)) > 2) return false;
  }
  return true;
}

CellBits bit(int unit) { return static_cast<CellBits>(1u << unit); }

// The unit of `candidates` with the largest score, the lowest of equals. *Requires* one.
int largest(CellBits candidates, std::span<const float> scores) {
  int best = std::countr_zero(candidates);
  for (CellBits rest = candidates; rest != 0; rest = static_cast<CellBits>(rest & (rest - 1))) {
    const int unit = std::countr_zero(rest);
    if (order_key(scores[static_cast<size_t>(unit)]) >
        order_key(scores[static_cast<size_t>(best)])) {
      best = unit;
    }
  }
  return best;
}

}  // namespace

std::span<const CellBits> transposable_tiles() {
  static const std::vector<CellBits> tiles = [] {
    std::vector<CellBits> found;
    for (uint32_t tile = 0; tile <= 0xffffu; ++tile) {
      const auto bits = static_cast<CellBits>(tile);
      if (std::popcount(bits) == 8 && is_two_by_four(bits)) found.push_back(bits);
    }
    return found;
  }();
  return tiles;
}

CellRule::CellRule(const PatternShape& pattern, int64_t taps)
    : transposable_(pattern.is_transposable()),
      rows_(pattern.cell_rows()),
      columns_(pattern.cell_columns()),
      taps_(taps),
      quota_(pattern.cell_quota()) {}

bool CellRule::allows(CellBits kept) const {
  return transposable_ ? is_two_by_four(kept) : std::popcount(kept) <= quota_;
}

CellBits CellRule::best(CellBits kept, CellBits candidates, std::span<const float> scores) const {
  candidates = static_cast<CellBits>(candidates & ~kept);
  if (transposable_) return best_transposable(kept, candidates, scores);
  for (int room = quota_ - std::popcount(kept); room > 0 && candidates != 0; --room) {
    const CellBits next = bit(largest(candidates, scores));
    kept = static_cast<CellBits>(kept | next);
    candidates = static_cast<CellBits>(candidates & ~next);
  }
  return kept;
}

CellBits CellRule::best_transposable(CellBits kept, CellBits candidates,
                                     std::span<const float> scores) const {
  // A tile that is filled from nothing is SemiSparse's, with its rule for equal sums.
  if (kept == 0 && candidates == all()) {
    return static_cast<CellBits>(reference::select_tile(scores.data(), 4));
  }
  double best_sum = -1.0;
  CellBits best = kept;
  for (const CellBits tile : transposable_tiles()) {
    if ((tile & kept) != kept) continue;
    double sum = 0.0;
    for (auto rest = static_cast<CellBits>(tile & candidates); rest != 0;
         rest = static_cast<CellBits>(rest & (rest - 1))) {
      const float score = scores[static_cast<size_t>(std::countr_zero(rest))];
      if (!std::isnan(score)) sum += static_cast<double>(score);
    }
    if (sum > best_sum) {
      best_sum = sum;
      best = static_cast<CellBits>(tile & (kept | candidates));
    }
  }
  return best;
}

CellBits CellRule::random(CellBits kept, const CounterRng& rng, uint64_t index) const {
  if (transposable_) {
    std::vector<CellBits> fitting;
    for (const CellBits tile : transposable_tiles()) {
      if ((tile & kept) == kept) fitting.push_back(tile);
    }
    if (!fitting.empty()) return fitting[static_cast<size_t>(rng.below(index, fitting.size()))];
    std::vector<float> scores(static_cast<size_t>(size()));  // a tile that cannot become full
    for (float& score : scores) score = rng.uniform(index++);
    auto candidates = static_cast<CellBits>(all() & ~kept);
    while (candidates != 0) {
      const CellBits next = bit(largest(candidates, scores));
      candidates = static_cast<CellBits>(candidates & ~next);
      if (allows(static_cast<CellBits>(kept | next))) kept = static_cast<CellBits>(kept | next);
    }
    return kept;
  }
  auto free = static_cast<CellBits>(all() & ~kept);
  for (int room = quota_ - std::popcount(kept); room > 0; --room) {
    CellBits rest = free;
    for (auto skip = rng.below(index++, static_cast<uint64_t>(std::popcount(free))); skip > 0;
         --skip) {
      rest = static_cast<CellBits>(rest & (rest - 1));
    }
    const CellBits next = bit(std::countr_zero(rest));
    kept = static_cast<CellBits>(kept | next);
    free = static_cast<CellBits>(free & ~next);
  }
  return kept;
}

}  // namespace lacuna
