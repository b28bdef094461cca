// LayoutPolicy: chooses the layout in which a parameter is stored.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>

#include "lacuna/framework/config/pattern_shape.h"
#include "lacuna/framework/core/convolution_shape.h"
#include "lacuna/framework/layouts/density_limits.h"
#include "lacuna/framework/layouts/layout.h"
#include "lacuna/framework/layouts/mask_set.h"
#include "lacuna/framework/layouts/pattern.h"
#include "lacuna/framework/param/parameter.h"
#include "lacuna/sparsity/options/layout_option.h"

namespace lacuna {

/// The inputs of `layout: auto`. Shared by the algorithms of a group or of phases.
struct CompressionLimits {
  /// Examples in a training batch.
  int64_t batch = 128;
  /// How often a batch multiplies by each element of a parameter, by the parameter's name: the rows
  /// of its products. Examples times tokens in a transformer, times positions in a convolution.
  /// Parameters without an entry: `batch` rows, or for convolutions `batch` images.
  std::map<std::string, int64_t> rows = {};
  /// The density up to which a parameter is stored as csr, or in the layout of its pattern, and
  /// masked above it: the result of an earlier run, or of the cost model when it is first needed.
  DensityLimits compress_below = {};
  /// Whether missing limits are measured, with results that may differ between machines and days;
  /// otherwise they are the same everywhere: `assumed_limit`.
  bool are_measured = true;

  /// Rows of the products of a training batch with this parameter.
  int64_t rows_of(const Parameter& parameter) const;
  /// The convolution of a training batch with this parameter: as many images of its size as give
  /// those rows. *Requires* a parameter that knows its images.
  ConvolutionShape convolution_of(const Parameter& parameter) const;
};

/// A density up to which compressed layouts are faster on most machines, without a measurement: 0.2
/// for csr, 0.1 for convolutions' weights, 0.75 for patterns, and 0 for csr that is kept for one
/// step.
double assumed_limit(const Parameter& parameter, const Layout& compressed,
                     PatternLifetime lifetime);

/// Chooses layouts for the parameters of one algorithm, or without an algorithm: the requested
/// layout, or the fastest one that can hold a mask.
class LayoutPolicy {
 public:
  explicit LayoutPolicy(LayoutOption option = {}, PatternShape pattern = {},
                        PatternLifetime lifetime = PatternLifetime::ManySteps);

  const LayoutOption& option() const { return option_; }
  const PatternShape& pattern() const { return pattern_; }
  /// How long a mask is kept.
  PatternLifetime lifetime() const { return lifetime_; }
  /// The limits under `auto`. Copies of a policy share them.
  CompressionLimits& limits() const { return *limits_; }
  void share_limits(const LayoutPolicy& other) { limits_ = other.limits_; }

  /// The alternative to masked: csr, or the one for the pattern. Weights of convolutions are stored
  /// as csr whatever their pattern.
  const Layout& compressed(const Parameter& parameter) const;
  /// The layout for a parameter with this mask: masked, which supports every mask, if the requested
  /// layout cannot hold it. Under `auto`, a missing limit is measured. *Errors:* ConfigError if the
  /// mask does not have the pattern.
  const Layout& choose(const Parameter& parameter, const MaskSet& mask) const;
  /// The layout for a mask with this many nonzeros that has the pattern as far as its count allows.
  const Layout& foresee(const Parameter& parameter, int64_t nnz) const;

 private:
  bool holds_any_positions(const Parameter& parameter) const;
  bool can_compress(const Parameter& parameter, const MaskSet& mask) const;
  const Layout& fastest(const Parameter& parameter, int64_t nnz) const;
  double limit_of_convolution(const Parameter& parameter) const;

  LayoutOption option_;
  PatternShape pattern_;
  PatternLifetime lifetime_;
  std::shared_ptr<CompressionLimits> limits_ = std::make_shared<CompressionLimits>();
};

}  // namespace lacuna
