// Installing a mask: gives a parameter another set of positions, in a suitable layout.
#pragma once

#include <cstdint>

#include "lacuna/framework/core/tensor.h"
#include "lacuna/framework/layouts/mask_set.h"
#include "lacuna/framework/param/parameter.h"
#include "lacuna/sparsity/weights/layout_policy.h"

namespace lacuna {

/// The changes by an installed mask.
struct MaskChange {
  int64_t dropped = 0;  ///< positions that were in the old mask only
  int64_t grown = 0;    ///< positions that are in the new mask only
  DeadLines dead = {};  ///< of the new mask
};

/// The optional inputs of an installation.
struct InstallOptions {
  /// The current mask, if some form of it already exists.
  const MaskSet* present = nullptr;
  /// A dense array in the parameter's shape with the new values; the gradient is then dropped.
  /// Otherwise values at remaining positions do not change, and new ones are zero.
  const Tensor* master = nullptr;
};

/// Gives a parameter a mask, in the layout that the policy chooses: values, gradient and optimizer
/// states move with it. Works without an algorithm. *Errors:* ShapeError if the mask has another
/// shape; ConfigError if it does not have the policy's pattern. *Cost:* O(nonzeros before and
/// after), and the shape's size with a master.
MaskChange install_mask(Parameter& parameter, const MaskSet& mask, const LayoutPolicy& policy,
                        const InstallOptions& options = {});

/// Gives a parameter a pattern, and at its positions the values of a dense row-major array; the
/// gradient is dropped. *Shapes:* `dense` has the parameter's shape. *Cost:* O(shape).
void take_values(Parameter& parameter, const PatternPtr& pattern, const Tensor& dense);

/// Moves a parameter with its mask to the layout that the policy's option names, for a checkpoint
/// that was saved in another; under `auto` it keeps its layout. *Errors:* ShapeError.
void restore_layout(Parameter& parameter, const LayoutPolicy& policy);

}  // namespace lacuna
