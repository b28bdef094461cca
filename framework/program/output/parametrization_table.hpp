// The factors of a run's parametrization, a line for each parameter.
#pragma once

#include <string>

#include "lacuna/framework/config/config.h"
#include "lacuna/framework/train/parts/experiment.hpp"

namespace lacuna {

/// What `plan` prints of `parametrization`; empty for a run without one.
class ParametrizationTable {
 public:
  explicit ParametrizationTable(const Experiment& experiment);

  bool empty() const { return rows_.children().empty(); }
  /// Empty for a run without one.
  std::string text() const;
  /// The same as `plan --json` has it (docs/reference/commands.md).
  const Config& to_config() const { return rows_; }

 private:
  Config rows_ = Config::list();
};

}  // namespace lacuna
