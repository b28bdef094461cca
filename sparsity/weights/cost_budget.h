// Densities of least loss under a budget of bytes or of predicted time.
#pragma once

#include <vector>

#include "lacuna/framework/config/config.h"
#include "lacuna/framework/param/parameter.h"
#include "lacuna/sparsity/options/loss_table.h"
#include "lacuna/sparsity/weights/layout_policy.h"

namespace lacuna {

/// A limit for several weights together, as a part of what they cost dense.
struct CostBudget {
  enum class Kind {
    Bytes,  ///< of a file: a bit for each position and 4 bytes for each nonzero, or dense
    Time,   ///< of a training step, as the cost model of `layout: auto` predicts it
  };
  Kind kind = Kind::Bytes;
  double part = 1.0;  ///< in (0, 1]

  /// From a map of one key, `bytes` or `time`. *Errors:* ConfigError.
  static CostBudget from_config(const Config& to);
};
const char* to_string(CostBudget::Kind kind);  ///< "bytes", "time"

/// Densities, and what they cost: bytes, or milliseconds.
struct BudgetedDensities {
  std::vector<double> densities;
  double dense_cost = 0.0;
  double cost = 0.0;
};

/// The densities of least loss by a table whose rows are those of the parameters, in hundredths or
/// at the table's sparsest level. *Errors:* ConfigError if the sparsest levels cost more than the
/// budget, and for a budget of time where nothing is measured (CompressionLimits::are_measured).
/// *Cost:* of time, the cost model's measurements, which are kept (layouts/cost).
BudgetedDensities densities_within(const CostBudget& budget,
                                   const std::vector<const Parameter*>& parameters,
                                   const LossTable& losses, const LayoutPolicy& layouts);

}  // namespace lacuna
