// LossTable: the loss of a model when one of its weights is pruned alone, at several sparsities.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "lacuna/framework/config/config.h"
#include "lacuna/framework/core/shape.h"

namespace lacuna {

/// A measured loss for each weight and sparsity. Losses are means over the calibration examples.
struct LossTable {
  /// The losses of one weight; all other weights are as they were.
  struct Row {
    std::string parameter;
    Shape shape;
    std::vector<double> sparsities;  ///< ascending, in (0, 1)
    std::vector<double> losses;      ///< one for each sparsity
  };
  /// The same as a curve for a solver: from the sparsest point to the dense one. Loss increases are
  /// 0 or more, and no denser point has a larger one than a sparser one: a loss that falls when
  /// weights are removed is noise.
  struct Curve {
    std::vector<double> densities;  ///< ascending; the last is 1
    std::vector<double> increases;  ///< descending or equal; the last is 0

    /// On the line between the two nearest points; that of the end beyond an end.
    double increase_at(double density) const;
  };

  double loss = 0.0;  ///< of the model as it was
  std::vector<Row> rows;

  Curve curve(size_t row) const;
  /// The table with the rows of these parameters alone, in their order. *Errors:* ConfigError if
  /// one has no row, or a row with another shape.
  LossTable of(const std::vector<std::string>& names, const std::vector<Shape>& shapes) const;

  /// From a map with `version`, `loss` and `rows`, as `to_config` makes it
  /// (docs/reference/run-folder.md). *Errors:* ConfigError, also for numbers that are not finite.
  static LossTable from_config(const Config& table);
  Config to_config() const;

  /// Sparsities at which losses are measured if nothing else is given.
  static std::vector<double> default_sparsities();
};

}  // namespace lacuna
