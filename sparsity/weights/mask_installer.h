// Installing a mask: a parameter gets another set of positions, in the layout that suits it.
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

/// Where an installation finds what it needs.
struct InstallOptions {
  /// The mask there is, where some form of it has been made already.
  const MaskSet* present = nullptr;
  /// A dense array in the parameter's shape from which the values are taken; the gradient is
  /// dropped then. Else values stay what they are at positions that stay, and new ones are zero.
  const Tensor* master = nullptr;
};

/// Gives a parameter a mask, in the layout that the policy chooses: values, gradient and optimizer
/// states move with it. Needs no algorithm, nor that the parameter is under one.
/// *Errors:* ShapeError when the mask is of another shape; ConfigError when it has not the policy's
/// pattern. *Cost:* O(nonzeros before and after), and the shape's size with a master.
MaskChange install_mask(Parameter& parameter, const MaskSet& mask, const LayoutPolicy& policy,
                        const InstallOptions& options = {});

/// Gives a parameter a pattern, and at its positions the values of a dense array; the gradient is
/// dropped. *Shapes:* dense as the parameter. *Cost:* O(shape).
void take_values(Parameter& parameter, const PatternPtr& pattern, const Tensor& dense);

/// Moves a parameter with its mask to the layout that the policy's option names, for a checkpoint
/// that was saved in another; under `auto` it stays in its own. *Errors:* ShapeError.
void restore_layout(Parameter& parameter, const LayoutPolicy& policy);

}  // namespace lacuna
