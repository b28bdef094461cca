// The N:M layouts: in each group of M consecutive inputs of an output at most N weights exist.
#pragma once

#include <string_view>

#include "lacuna/framework/layouts/layout.h"

namespace lacuna {

/// A form of N:M sparsity.
struct NmFormat {
  int n = 2;  ///< nonzeros of a group at most, 1 ≤ n ≤ m
  int m = 4;  ///< columns of a group, at most 16
  /// 2:4 alone: in each tile of 4 × 4 at most two weights of a row and two of a column exist, so
  /// that the transposed matrix is 2:4 too, and the input gradient runs as the forward product does
  /// (Hubara et al., 2021, arXiv 2102.08124).
  bool transposable = false;

  friend bool operator==(const NmFormat&, const NmFormat&) = default;
};

/// The layout that stores a format's slots (kernels/nm/nm.h): "nm 2:4", "nm 2:4 transposable". The
/// same object for the same format. Its index() throws ShapeError when a group's size does not
/// divide the columns (and, transposable, four the rows), or when a group holds more than n. Slots
/// that groups with fewer nonzeros leave hold zeros. *Errors:* ConfigError when the format is none.
const Layout& nm_layout(const NmFormat& format);

/// The layout of such a name; null when it is not one.
const Layout* find_nm_layout(std::string_view name);

}  // namespace lacuna
