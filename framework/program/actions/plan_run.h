// Computes what a run will do, before any training: `lacuna plan`.
#pragma once

#include <string>

#include "lacuna/framework/config/config.h"
#include "lacuna/framework/program/actions/given_config.h"

namespace lacuna {

struct PlanOptions {
  /// How long steps are timed, for this run and for dense training; 0: not at all.
  double seconds = 0.0;
  ReportLine report_line = nullptr;
};

struct RunPlan {
  Config report;     ///< as `lacuna plan --json` prints it (docs/reference/commands.md)
  std::string text;  ///< as `lacuna plan` prints it
  Config config;     ///< resolved: every key that has a default has its value
};

/// Builds everything that a run of this configuration needs, so that mistakes are found, and counts
/// what the sparsity algorithm will do. Nothing is written, and only `options.seconds` of steps are
/// trained. *Effect:* sets the process's threads and layout fallback to `train.threads` and
/// `train.layout_fallback`. *Errors:* ConfigError, DataError, CheckpointError, MemoryError. *Cost:*
/// the data is read; under `layout: auto` layouts are measured.
RunPlan plan_run(const GivenConfig& given, const PlanOptions& options = {});

}  // namespace lacuna
