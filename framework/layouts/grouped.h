// Layouts for weights whose nonzeros come in tiles: N:M patterns shared by groups of rows, and
// blocks. Only the nonzeros are stored, without padding; docs/kernels.md tells in which order.
#pragma once

#include <string_view>

#include "lacuna/framework/layouts/layout.h"

namespace lacuna {

/// Of every m consecutive columns at most n are stored, the same ones for `group` consecutive rows.
struct GroupedNmFormat {
  int n = 2, m = 4;
  int group = 8;
  friend bool operator==(const GroupedNmFormat&, const GroupedNmFormat&) = default;
};

/// Blocks of rows × columns, aligned to their own size, are stored whole or not at all.
struct BlockFormat {
  int rows = 16, columns = 16;
  friend bool operator==(const BlockFormat&, const BlockFormat&) = default;
};

/// The layout of a format, named "nm 2:4 g8" or "block 16x16": one object for each, alive for ever.
/// Groups of a multiple of four rows and blocks of which either side is one run on the kernels
/// of kernels/blocks/grouped.h, others on those of csr. Its index() throws ShapeError when the
/// shape is not a multiple of the group or block, and when the positions are not whole tiles or
/// more than n of m. *Errors:* ConfigError unless 1 ≤ n ≤ m and group, rows and columns are
/// positive.
const Layout& grouped_nm_layout(const GroupedNmFormat& format);
const Layout& block_layout(const BlockFormat& format);

/// The layout of such a name; null when it is not one.
const Layout* find_grouped_layout(std::string_view name);

}  // namespace lacuna
