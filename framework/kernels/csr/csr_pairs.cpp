// Rows in pairs that share columns: see CsrGroup::shared.
#include <algorithm>
#include <bit>
#include <utility>

#include "lacuna/framework/kernels/csr/csr_stream.hpp"
#include "lacuna/framework/kernels/instruction_set.h"

namespace lacuna {
namespace {

// Pairs the rows of each group of a stream whose rows' columns ascend.
class Pairing {
 public:
  Pairing(CsrStream& stream, std::span<uint32_t> along)
      : stream_(stream), along_(along), words_((stream.tile_columns + 63) / 64) {}

  void run() {
    std::vector<CsrGroup> groups;
    for (CsrTile& tile : stream_.tiles) {
      const auto first = static_cast<int64_t>(groups.size());
      for (int64_t g = tile.first_group; g < tile.end_group; ++g) {
        add(stream_.groups[static_cast<size_t>(g)], groups);
      }
      tile.first_group = first;
      tile.end_group = static_cast<int64_t>(groups.size());
    }
    groups.shrink_to_fit();
    stream_.groups = std::move(groups);
  }

 private:
  // Rows of a group by number, and how many columns they share, a multiple of four.
  struct Pair {
    uint32_t first = 0, second = 0;
    int32_t shared = 0;
  };

  void add(const CsrGroup& group, std::vector<CsrGroup>& groups) {
    if (group.rows < 2 || group.length < kShared) return groups.push_back(group);
    find_pairs(group);
    write(group);
    CsrGroup part = group;
    if (!single_.empty()) {
      part.rows = 1;
      push(part, groups);
    }
    for (auto i = pairs_.begin(); i < pairs_.end();) {
      const auto end = std::ranges::upper_bound(i, pairs_.end(), i->shared, {}, &Pair::shared);
      part.shared = i->shared;
      part.rows = static_cast<int32_t>(2 * (end - i));
      push(part, groups);
      i = end;
    }
  }
  // Adds the group, and goes on behind it.
  static void push(CsrGroup& group, std::vector<CsrGroup>& groups) {
    groups.push_back(group);
    group.first_row += group.rows;
    group.first_value += int64_t{group.rows} * group.length;
  }

  uint64_t* bits_of(int64_t row) { return bits_.data() + row * words_; }

  // Each row in turn gets the one that shares most with it, of the next few that have none yet.
  void find_pairs(const CsrGroup& group) {
    bits_.assign(static_cast<size_t>(group.rows * words_), 0);
    for (int64_t row = 0; row < group.rows; ++row) {
      uint64_t* bits = bits_of(row);
      const uint16_t* offsets = stream_.offsets.data() + group.first_value + row * group.length;
      for (int32_t k = 0; k < group.length; ++k)
        bits[offsets[k] / 64] |= uint64_t{1} << offsets[k] % 64;
    }
    single_.resize(static_cast<size_t>(group.rows));
    for (size_t i = 0; i < single_.size(); ++i) single_[i] = static_cast<uint32_t>(i);
    pairs_.clear();
    while (single_.size() > 1) {
      const uint32_t row = single_.back();
      single_.pop_back();
      const size_t begin = single_.size() - std::min(single_.size(), kCandidates);
      size_t best = begin;
      int32_t most = -1;
      for (size_t i = begin; i < single_.size(); ++i) {
        const int32_t common = count_common(bits_of(row), bits_of(single_[i]));
        if (common > most) {
          most = common;
          best = i;
        }
      }
      pairs_.push_back({row, single_[best], most / kShared * kShared});
      single_[best] = single_.back();
      single_.pop_back();
    }
    std::ranges::stable_sort(pairs_, {}, &Pair::shared);
  }
  int32_t count_common(const uint64_t* a, const uint64_t* b) const {
    int32_t count = 0;
    for (int64_t w = 0; w < words_; ++w) count += std::popcount(a[w] & b[w]);
    return count;
  }

  // The rows in their new order, and each row's nonzeros.
  void write(const CsrGroup& group) {
    const auto first_value = static_cast<size_t>(group.first_value);
    const auto length = static_cast<size_t>(group.length);
    const size_t count = static_cast<size_t>(group.rows) * length;
    uint16_t* offsets = stream_.offsets.data() + first_value;
    uint32_t* along = along_.empty() ? nullptr : along_.data() + first_value;
    uint32_t* rows = stream_.rows_in_order.data() + group.first_row;
    old_offsets_.assign(offsets, offsets + count);
    if (along != nullptr) old_along_.assign(along, along + count);
    old_rows_.assign(rows, rows + group.rows);
    const auto put = [&](uint32_t row, const uint64_t* other, int32_t shared) {
      *rows++ = old_rows_[row];
      const uint16_t* old = old_offsets_.data() + row * length;
      split(old, other, static_cast<size_t>(shared));
      for (size_t k = 0; k < length; ++k) offsets[k] = old[order_[k]];
      offsets += length;
      if (along == nullptr) return;
      for (size_t k = 0; k < length; ++k) along[k] = old_along_[row * length + order_[k]];
      along += length;
    };
    order_.resize(length);
    if (!single_.empty()) put(single_[0], bits_of(single_[0]), 0);
    for (const Pair& pair : pairs_) {
      put(pair.first, bits_of(pair.second), pair.shared);
      put(pair.second, bits_of(pair.first), pair.shared);
    }
  }

  // The order of a row's nonzeros: `shared` of those whose columns `other` has too, then the rest.
  void split(const uint16_t* offsets, const uint64_t* other, size_t shared) {
    // Each goes to both lists' ends, of which one moves on: a jump would be foreseen by no
    // processor.
    others_.resize(order_.size());
    size_t next_shared = 0, next_other = 0;
    for (size_t k = 0; k < order_.size(); ++k) {
      const size_t is_common = other[offsets[k] / 64] >> offsets[k] % 64 & 1;
      const size_t is_shared = is_common & static_cast<size_t>(next_shared < shared);
      order_[next_shared] = static_cast<uint32_t>(k);
      others_[next_other] = static_cast<uint32_t>(k);
      next_shared += is_shared;
      next_other += 1 - is_shared;
    }
    std::copy_n(others_.begin(), next_other, order_.begin() + static_cast<ptrdiff_t>(shared));
  }

  static constexpr int32_t kShared = 4;
  static constexpr size_t kCandidates = 64;

  CsrStream& stream_;
  std::span<uint32_t> along_;
  int64_t words_;
  std::vector<uint64_t> bits_;    // [row of the group][words_]: its columns
  std::vector<uint32_t> single_;  // rows without a partner yet
  std::vector<Pair> pairs_;
  std::vector<uint16_t> old_offsets_;
  std::vector<uint32_t> old_along_, old_rows_, order_, others_;
};

}  // namespace

void internal::pair_rows(CsrStream& stream, std::span<uint32_t> along) {
  if (has_many_nonzeros(stream) && active_instruction_set() == "avx512") {
    Pairing(stream, along).run();
  }
}

}  // namespace lacuna
