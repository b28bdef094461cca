// PatternShape: which positions of a weight may exist together: any, N of every M, or whole blocks.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "lacuna/framework/core/shape.h"

namespace lacuna {

class Config;

/// How masks, layouts and kernels describe N:M and blocks. A value type; its objects are always
/// valid. Weights are [out, in]; dimension 0 is the rows, dimension 1 the columns. A convolution's
/// are [out, in / groups, kh, kw]: for a pattern, each tap (kh, kw) is a separate matrix, so units
/// and cells consist of consecutive input channels at one tap.
///
/// A *unit* is kept or dropped as a whole: one position, some rows of a column (N:M whose rows
/// share their pattern), or a block. A *cell* has a quota of units: M consecutive units of a row,
/// of which N may be kept, or, for transposable 2:4, a tile of 4 × 4 with two in each row and each
/// column.
class PatternShape {
 public:
  enum class Kind { Unstructured, Nm, Block };
  /// How the scores of a unit's positions become one: Σ |s| or √ Σ s².
  enum class Norm { L1, L2 };

  static constexpr int kLargestM = 16;
  static constexpr int64_t kLargestUnit = int64_t{1} << 20;  ///< rows, and columns

  /// Unstructured: every position is independent.
  PatternShape() = default;
  /// Of each m consecutive units of a row at most n exist; a unit is `shared_rows` rows of a column
  /// (`group` in a configuration). *Errors:* ConfigError unless 1 ≤ n ≤ m ≤ 16 and 1 ≤ shared_rows
  /// ≤ kLargestUnit.
  static PatternShape nm(int n, int m, int64_t shared_rows = 1);
  /// 2:4 in which each tile of 4 × 4 has at most two positions in a row and two in a column, so
  /// that the transposed matrix is 2:4 too (Hubara et al., 2021, arXiv:2102.08124).
  static PatternShape transposable_2_4();
  /// Blocks aligned to their own size exist whole or not at all. *Errors:* ConfigError unless both
  /// sides are from 1 to kLargestUnit.
  static PatternShape block(int64_t rows, int64_t columns, Norm norm = Norm::L1);

  /// Parses the text that to_string() returns, and no other.
  static std::optional<PatternShape> parse(std::string_view text);
  /// `{type: nm, n: 2, m: 4, group: 1, transposable: false}`, where n is below m, or
  /// `{type: block, rows: 16, cols: 16, norm: l1}`; null → unstructured. *Errors:* ConfigError.
  static PatternShape from_config(const Config& pattern);
  /// The keys rows, cols, norm. *Errors:* ConfigError.
  static PatternShape block_from_config(const Config& options);

  Kind kind() const { return kind_; }
  bool is_structured() const { return kind_ != Kind::Unstructured; }
  bool is_nm() const { return kind_ == Kind::Nm; }
  bool is_block() const { return kind_ == Kind::Block; }
  bool is_transposable() const { return transposable_; }

  /// 1 where the pattern is not N:M.
  int n() const { return n_; }
  int m() const { return m_; }
  int64_t unit_rows() const { return unit_rows_; }
  int64_t unit_columns() const { return unit_columns_; }
  int64_t unit_size() const { return unit_rows_ * unit_columns_; }
  /// In units.
  int64_t cell_rows() const { return transposable_ ? 4 : 1; }
  int64_t cell_columns() const { return m_; }
  /// Units that a full cell keeps.
  int cell_quota() const { return transposable_ ? 8 : n_; }
  /// Fraction of positions that the fullest pattern keeps.
  double full_density() const { return static_cast<double>(n_) / m_; }

  /// An option of the selection that no layout depends on: equality compares it, the text form
  /// omits it.
  Norm norm() const { return norm_; }

  /// The divisors that the rows and the columns (input channels) must have.
  Shape divisors() const { return Shape{unit_rows_ * cell_rows(), unit_columns_ * cell_columns()}; }
  /// The units of a shape that fits, with that shape's taps: [rows of units, columns of units, kh,
  /// kw]. Units are ordered by their first positions.
  Shape units(const Shape& shape) const;
  /// *Errors:* ShapeError if the shape is not divisible; the message begins with `owner`, as in
  /// "parameter 'fc1.weight'", and the shape.
  void require_fit(const std::string& owner, const Shape& shape) const;

  /// "unstructured", "nm 2:4", "nm 2:4 transposable", "nm 2:4 g8", "block 16x16": the names of
  /// layouts, in files and on the command line.
  std::string to_string() const;
  /// "2:4", "2:4 transposable", "2:4 in groups of 8 rows", "blocks of 16x16": for messages.
  std::string description() const;

  friend bool operator==(const PatternShape&, const PatternShape&) = default;

 private:
  static bool is_valid_nm(int64_t n, int64_t m, int64_t shared_rows);
  static bool is_valid_block(int64_t rows, int64_t columns);

  Kind kind_ = Kind::Unstructured;
  Norm norm_ = Norm::L1;
  bool transposable_ = false;
  int n_ = 1, m_ = 1;
  int64_t unit_rows_ = 1, unit_columns_ = 1;
};

}  // namespace lacuna
