// One workload's measurement: every contender, in every product.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "common/measure.h"
#include "conv/contender.h"

namespace lacuna::bench {

inline constexpr const char* kForward = "forward";
inline constexpr const char* kBoth = "forward+backward";

// The opponents' names among the contenders.
inline constexpr const char* kDirect = "onednn direct";
inline constexpr const char* kAutomatic = "onednn auto";

/// A contender's time in a pass: the sum of its products', each of which is measured by itself.
struct ConvolutionRow {
  std::string layout;
  std::string pass;
  int64_t nnz = 0;
  Timing time = {};  ///< the products' added up
  /// More than that between row-major neighbours: converting what comes in and what goes out.
  double conversion_ms = 0.0;
  double dense_ms = 0.0;  ///< the faster of the opponents, product by product
};

struct ConvolutionComparison {
  ConvolutionShape shape;
  double sparsity = 0.0;
  double density_limit = 0.0;        ///< up to which `layout: auto` takes csr
  std::string chosen = {};           ///< by `layout: auto`
  std::string implementations = {};  ///< of the opponents, for a line of text
  std::vector<ConvolutionRow> rows = {};

  const ConvolutionRow& row(const std::string& layout, const std::string& pass) const;
};

/// Makes the operands, checks every contender, and measures. *Errors:* those of check.
ConvolutionComparison compare(const ConvolutionShape& shape, double sparsity,
                              const MeasureOptions& options);

}  // namespace lacuna::bench
