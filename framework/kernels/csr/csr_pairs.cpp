// Rows in pairs that share columns: see CsrGroup::shared.
#include <algorithm>
#include <utility>

#include "lacuna/framework/kernels/csr/csr_stream.hpp"
#include "lacuna/framework/kernels/csr/row_pairs.hpp"
#include "lacuna/framework/kernels/instruction_set.hpp"

namespace lacuna {
namespace {

// Pairs the rows of each group of a stream whose rows have ascending columns.
class Pairing {
 public:
  Pairing(CsrStream& stream, std::span<uint32_t> along) : stream_(stream), along_(along) {}

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
  void add(const CsrGroup& group, std::vector<CsrGroup>& groups) {
    const bool is_paired = group.shared > 0;
    if (is_paired || group.rows < 2 || group.length < RowPairing::kUnit) {
      return groups.push_back(group);
    }
    find_pairs(group);
    write(group);
    CsrGroup part = group;
    if (!pairing_.single().empty()) {
      part.rows = 1;
      push(part, groups);
    }
    const std::vector<RowPairing::Pair>& pairs = pairing_.pairs();
    for (auto i = pairs.begin(); i < pairs.end();) {
      const auto end =
          std::ranges::upper_bound(i, pairs.end(), i->shared, {}, &RowPairing::Pair::shared);
      part.shared = i->shared;
      part.rows = static_cast<int32_t>(2 * (end - i));
      push(part, groups);
      i = end;
    }
  }
  // Adds the group, and moves on to the next place.
  static void push(CsrGroup& group, std::vector<CsrGroup>& groups) {
    groups.push_back(group);
    group.first_row += group.rows;
    group.first_value += int64_t{group.rows} * group.length;
  }

  void find_pairs(const CsrGroup& group) {
    pairing_.begin(group.rows, stream_.tile_columns);
    const uint16_t* offsets = stream_.offsets.data() + group.first_value;
    for (int64_t row = 0; row < group.rows; ++row) {
      for (int32_t k = 0; k < group.length; ++k) pairing_.set(row, *offsets++);
    }
    pairing_.run();
  }

  // Writes the rows in their new order, with each row's nonzeros.
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
    const auto put = [&](uint32_t row, uint32_t other, int32_t shared) {
      *rows++ = old_rows_[row];
      const uint16_t* old = old_offsets_.data() + row * length;
      const std::vector<uint32_t>& order =
          pairing_.order(other, shared, length, [&](size_t k) { return old[k]; });
      for (size_t k = 0; k < length; ++k) offsets[k] = old[order[k]];
      offsets += length;
      if (along == nullptr) return;
      for (size_t k = 0; k < length; ++k) along[k] = old_along_[row * length + order[k]];
      along += length;
    };
    for (const uint32_t row : pairing_.single()) put(row, row, 0);
    for (const RowPairing::Pair& pair : pairing_.pairs()) {
      put(pair.first, pair.second, pair.shared);
      put(pair.second, pair.first, pair.shared);
    }
  }

  CsrStream& stream_;
  std::span<uint32_t> along_;
  RowPairing pairing_;
  std::vector<uint16_t> old_offsets_;
  std::vector<uint32_t> old_along_, old_rows_;
};

}  // namespace

void internal::pair_rows(CsrStream& stream, std::span<uint32_t> along) {
  if (has_many_nonzeros(stream) && active_instruction_set() == "avx512") {
    pair_all_rows(stream, along);
  }
}

void internal::pair_all_rows(CsrStream& stream, std::span<uint32_t> along) {
  Pairing(stream, along).run();
}

}  // namespace lacuna
