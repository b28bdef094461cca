// Selections within a pattern by the words of its rules, position by position, of weights [out,
// in / groups, kh, kw] and of matrices: what the product's are held against.
#pragma once

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <map>
#include <span>
#include <vector>

#include "lacuna/framework/config/pattern_shape.h"
#include "lacuna/framework/core/bit_mask.h"
#include "lacuna/framework/core/shape.h"

namespace lacuna::by_hand {

using Scores = std::vector<float>;  // of all positions, none below 0

/// The units and cells of one weight. Without a pattern a unit is a position.
class Weight {
 public:
  Weight(const PatternShape& pattern, const Shape& shape)
      : p_(pattern), out_(shape[0]), in_(shape[1]), numel_(shape.numel()) {
    for (int i = 2; i < shape.rank(); ++i) taps_ *= shape[i];
    const int64_t height = p_.unit_rows(), width = p_.unit_columns();
    for (int64_t o = 0; o < out_; o += height) {
      for (int64_t c = 0; c < in_; c += width) {
        for (int64_t t = 0; t < taps_; ++t) units_.push_back(positions(o, c, t));
      }
    }
    std::ranges::sort(units_);  // by the first position, and there are no two with the same
    for (size_t u = 0; u < units_.size(); ++u) unit_at_[units_[u].front()] = u;
    if (!p_.is_nm()) return;
    for (int64_t o = 0; o < out_; o += height * p_.cell_rows()) {
      for (int64_t c = 0; c < in_; c += p_.cell_columns()) {
        for (int64_t t = 0; t < taps_; ++t) add_cell(o, c, t);
      }
    }
    std::ranges::sort(cells_);
  }

  int64_t unit_count() const { return static_cast<int64_t>(units_.size()); }
  int64_t unit_size() const { return p_.unit_size(); }

  /// The `count` present units with the largest scores.
  BitMask keep(const BitMask& mask, const Scores& scores, int64_t count) const {
    std::vector<char> present = units_in(mask);
    for (const Cell& cell : cells_) {
      if (!allows(bits(cell, present)))
        set(cell, best(0, bits(cell, present), cell, scores), present);
    }
    return positions_of(chosen(present, 1, scores, count));
  }

  /// Without N:M `keep`; else as few cells pruned as leave at most `count` units, those first that
  /// lose the least.
  BitMask prune_gradually(const BitMask& mask, const Scores& scores, int64_t count) const {
    if (!p_.is_nm()) return keep(mask, scores, count);
    std::vector<char> present = units_in(mask);
    std::vector<std::pair<double, size_t>> losses;
    for (size_t c = 0; c < cells_.size(); ++c) {
      const uint32_t there = bits(cells_[c], present);
      if (allows(there)) continue;
      losses.emplace_back(sum(there & ~best(0, there, cells_[c], scores), cells_[c], scores), c);
    }
    std::ranges::sort(losses);
    for (const auto& [loss, c] : losses) {
      if (std::ranges::count(present, 1) <= count) break;
      set(cells_[c], best(0, bits(cells_[c], present), cells_[c], scores), present);
    }
    return positions_of(present);
  }

  /// `mask` and the units with the largest scores until there are `count`; in N:M, until each cell
  /// is full.
  BitMask grow_maximum(const BitMask& mask, const Scores& scores, int64_t count) const {
    std::vector<char> present = units_in(mask);
    if (!p_.is_nm()) {
      const int64_t missing = count - std::ranges::count(present, 1);
      const std::vector<char> grown = chosen(present, 0, scores, missing);
      for (size_t u = 0; u < grown.size(); ++u) present[u] = present[u] | grown[u];
      return positions_of(present);
    }
    for (const Cell& cell : cells_) {
      const uint32_t there = bits(cell, present);
      if (std::popcount(there) < p_.cell_quota())
        set(cell, best(there, all(), cell, scores), present);
    }
    return positions_of(present);
  }

  /// Whether a mask has the pattern as a whole.
  bool fits(const BitMask& mask) const {
    const std::vector<char> present = units_in(mask);
    if (!(positions_of(present) == mask)) return false;  // a unit is there in part
    return std::ranges::all_of(cells_, [&](const Cell& c) { return allows(bits(c, present)); });
  }

 private:
  using Cell = std::vector<size_t>;  // its units, row by row

  int64_t flat(int64_t o, int64_t c, int64_t t) const { return (o * in_ + c) * taps_ + t; }
  std::vector<int64_t> positions(int64_t o, int64_t c, int64_t t) const {
    std::vector<int64_t> unit;
    for (int64_t i = 0; i < p_.unit_rows(); ++i) {
      for (int64_t j = 0; j < p_.unit_columns(); ++j) unit.push_back(flat(o + i, c + j, t));
    }
    return unit;
  }
  void add_cell(int64_t o, int64_t c, int64_t t) {
    Cell cell;
    for (int64_t i = 0; i < p_.cell_rows(); ++i) {
      for (int64_t j = 0; j < p_.cell_columns(); ++j) {
        cell.push_back(unit_at_.at(flat(o + i * p_.unit_rows(), c + j, t)));
      }
    }
    cells_.push_back(cell);
  }

  std::vector<char> units_in(const BitMask& mask) const {
    std::vector<char> present;
    for (const auto& unit : units_) {
      present.push_back(std::ranges::all_of(unit, [&](int64_t i) { return mask.test(i); }) ? 1 : 0);
    }
    return present;
  }
  BitMask positions_of(const std::vector<char>& units) const {
    BitMask mask = BitMask::zeros(numel_);
    for (size_t u = 0; u < units.size(); ++u) {
      if (units[u] == 0) continue;
      for (const int64_t i : units_[u]) mask.set(i);
    }
    return mask;
  }
  float score(size_t unit, const Scores& scores) const {
    const bool squares = p_.norm() == PatternShape::Norm::L2;
    float total = 0.0f;
    for (const int64_t i : units_[unit]) {
      const float s = scores[static_cast<size_t>(i)];
      total += squares ? s * s : s;
    }
    return squares ? std::sqrt(total) : total;
  }
  // Of those in the state, `count` by score, ties by place.
  std::vector<char> chosen(const std::vector<char>& state, char wanted, const Scores& scores,
                           int64_t count) const {
    std::vector<std::pair<float, size_t>> order;
    for (size_t u = 0; u < state.size(); ++u) {
      if (state[u] == wanted) order.emplace_back(-score(u, scores), u);
    }
    std::ranges::sort(order);
    std::vector<char> found(state.size());
    for (size_t i = 0; i < order.size() && static_cast<int64_t>(i) < count; ++i) {
      found[order[i].second] = 1;
    }
    return found;
  }

  uint32_t all() const { return (1u << (p_.cell_rows() * p_.cell_columns())) - 1; }
  static uint32_t bits(const Cell& cell, const std::vector<char>& present) {
    uint32_t found = 0;
    for (size_t i = 0; i < cell.size(); ++i) found |= present[cell[i]] != 0 ? 1u << i : 0u;
    return found;
  }
  static void set(const Cell& cell, uint32_t bits, std::vector<char>& present) {
    for (size_t i = 0; i < cell.size(); ++i) present[cell[i]] = (bits >> i & 1) != 0 ? 1 : 0;
  }
  double sum(uint32_t bits, const Cell& cell, const Scores& scores) const {
    double total = 0.0;
    for (size_t i = 0; i < cell.size(); ++i) {
      if ((bits >> i & 1) != 0) total += static_cast<double>(score(cell[i], scores));
    }
    return total;
  }
  bool allows(uint32_t bits) const {
    if (!p_.is_transposable()) return std::popcount(bits) <= p_.n();
    for (int i = 0; i < 4; ++i) {
      if (std::popcount(bits & 0xfu << 4 * i) > 2 || std::popcount(bits & 0x1111u << i) > 2) {
        return false;
      }
    }
    return true;
  }
  // `kept` and the best of the candidates.
  uint32_t best(uint32_t kept, uint32_t candidates, const Cell& cell, const Scores& scores) const {
    candidates &= ~kept;
    if (!p_.is_transposable()) {
      while (candidates != 0) {  // the largest that has room, the first of equals
        int next = std::countr_zero(candidates);
        for (int i = next; i < static_cast<int>(cell.size()); ++i) {
          const bool larger = score(cell[static_cast<size_t>(i)], scores) >
                              score(cell[static_cast<size_t>(next)], scores);
          if ((candidates >> i & 1) != 0 && larger) next = i;
        }
        candidates &= ~(1u << next);
        if (allows(kept | 1u << next)) kept |= 1u << next;
      }
      return kept;
    }
    double most = -1.0;
    uint32_t found = kept;
    for (uint32_t tile = 0; tile < 0x10000; ++tile) {
      if (std::popcount(tile) != 8 || !allows(tile) || (tile & kept) != kept) continue;
      const double total = sum(tile & candidates, cell, scores);
      if (total > most) {
        most = total;
        found = tile & (kept | candidates);
      }
    }
    return found;
  }

  PatternShape p_;
  int64_t out_, in_, taps_ = 1, numel_;
  std::vector<std::vector<int64_t>> units_;
  std::map<int64_t, size_t> unit_at_;  // by its first position
  std::vector<Cell> cells_;
};

}  // namespace lacuna::by_hand
