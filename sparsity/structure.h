// Structure: the shape that a sparse pattern must have: N:M, grouped N:M, or blocks.
#pragma once

#include <cstdint>
#include <string>

#include "lacuna/framework/core/config.h"
#include "lacuna/framework/core/shape.h"
#include "lacuna/framework/layouts/layout.h"

namespace lacuna {

/// What positions a mask may have together. Weights are [out, in]; dimension 0 is the rows, all
/// others together the columns.
///
/// A *unit* is what is kept or dropped as a whole: one position, `group` rows of a column (grouped
/// N:M), or a block. A *cell* is what has a quota of units: M consecutive units of a row, of which
/// N may be kept, or, for transposable 2:4, a tile of 4×4 with two in each row and each column.
struct Structure {
  enum class Kind { None, Nm, Block };
  enum class Norm { L1, L2 };
  /// How a tile of a transposable pattern is chosen: the best of the 90 that are possible, or the
  /// largest values one after the other.
  enum class Search { Exact, Greedy };

  Kind kind = Kind::None;
  int n = 0, m = 0;               ///< of N:M
  int group = 1;                  ///< rows that share their N:M pattern
  bool transposable = false;      ///< 2:4 in rows and in columns
  Search search = Search::Exact;  ///< of transposable
  int64_t rows = 1, columns = 1;  ///< of a block
  Norm norm = Norm::L1;           ///< of the scores in a block

  static Structure none() { return {}; }
  /// *Errors:* ConfigError unless 1 ≤ n < m ≤ 16 and group ≥ 1.
  static Structure nm(int n, int m, int group = 1);
  static Structure transposable_2_4(Search search = Search::Exact);
  /// *Errors:* ConfigError unless both are at least 1.
  static Structure block(int64_t rows, int64_t columns, Norm norm = Norm::L1);
  /// `{type: nm, n: 2, m: 4, group: 1, transposable: false, search: exact}` or `{type: block, rows:
  /// 16, cols: 16, norm: l1}`; null → none. *Errors:* ConfigError.
  static Structure from_config(const Config& pattern);
  /// The keys rows, cols, norm. *Errors:* ConfigError.
  static Structure block_from_config(const Config& options);

  bool exists() const { return kind != Kind::None; }
  bool is_nm() const { return kind == Kind::Nm; }
  int64_t unit_rows() const { return is_nm() ? group : rows; }
  int64_t unit_columns() const { return is_nm() ? 1 : columns; }
  int64_t unit_size() const { return unit_rows() * unit_columns(); }
  int64_t cell_rows() const { return transposable ? 4 : 1; }
  int64_t cell_columns() const { return is_nm() ? m : 1; }
  /// Fraction of positions that the fullest pattern keeps.
  double full_density() const { return is_nm() ? static_cast<double>(n) / m : 1.0; }
  /// The matrix of units of a shape that fits.
  Shape units(const Shape& shape) const;
  /// *Errors:* ShapeError when the shape cannot be divided so; begins with `whose`, as in
  /// "parameter 'fc1.weight'", and the shape.
  void require_fit(const std::string& whose, const Shape& shape) const;
  /// The layout made for such patterns. *Requires* exists().
  const Layout& layout() const;
  /// "2:4", "2:4 transposable", "2:4 in groups of 8 rows", "blocks of 16x16": for messages.
  std::string description() const;
};

}  // namespace lacuna
