// One workload's measurement: every contender, in every pass.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "common/measure.h"
#include "lacuna/framework/layouts/cost/cost_model.hpp"

namespace lacuna::bench {

inline constexpr const char* kForward = "forward";
inline constexpr const char* kBoth = "forward+backward";
/// Forward, backward, Adam's update: what the cost model of layout auto predicts.
inline constexpr const char* kStep = "step";

/// The dense opponent's name among the contenders.
inline constexpr const char* kOpponent = "onednn";

/// A dense weight behind activations of which 2 of 4 are selected in every pass.
inline constexpr const char* kActivations = "dense, activations 2:4";

/// Appended to a contender's name where it also selects its mask again, once in kMaskSteps passes.
inline constexpr const char* kSelected = ", selected";
inline constexpr int kMaskSteps = 10;

/// Which contenders run.
enum class Field {
  All,
  Structured,  ///< the opponent, csr, and the structured patterns of that sparsity
};

/// A contender's time in a pass.
struct LinearRow {
  std::string layout;
  std::string pass;
  std::string pattern;      ///< "uniform", "skewed" or "structured"
  std::string activations;  ///< "own order" or "row-major"
  int64_t nnz = 0;
  Timing time;
  double dense_ms = 0.0;  ///< of the opponent in this pass; in a step, of lacuna's dense layout
  std::optional<double> predicted_ms = {};  ///< by the cost model
};

struct LinearComparison {
  int64_t batch = 0, in = 0, out = 0;
  double sparsity = 0.0;
  LayoutChoice choice = {};  ///< of layout auto; none among the structured contenders alone
  std::vector<LinearRow> rows = {};

  const LinearRow& row(const std::string& layout, const std::string& pass) const;
  /// Null when there is none.
  const LinearRow* find(const std::string& layout, const std::string& pass) const;
};

/// Makes the operands, checks every contender, and measures. *Errors:* those of check.
LinearComparison compare(int64_t batch, int64_t in, int64_t out, double sparsity, Field field,
                         const MeasureOptions& options);

}  // namespace lacuna::bench
