// The linear operation for N:M sparse activations and a dense weight.
#pragma once

#include "lacuna/framework/autograd/variable.h"
#include "lacuna/framework/param/gradient_sink.h"

namespace lacuna {

/// Whether `linear` should run the sparse products: x is N:M sparse, the weight is dense, and the
/// sizes make them faster. Depends only on format and shapes, so that training, evaluation and a
/// resumed run use the same products.
bool linear_sparse_input_pays(const Variable& x, const WeightReference& weight);

/// Y = X Wᵀ + b as by `linear`, up to rounding. All three products skip the dropped elements of
/// x (kernels/nm/nm_activations.hpp). The input gradient is dY W in x's slots and zero
/// elsewhere, as the operation of x needs it. A zero of x times an infinite or NaN weight or
/// gradient may be skipped instead of giving NaN. *Requires* shapes that fit, x.nm(), and a
/// weight in layout dense. *Saves:* x's slots, not x. The weight keeps a copy of its values in
/// slabs of outputs.
Variable linear_sparse_input(const Variable& x, const WeightReference& weight,
                             const Variable& bias);

}  // namespace lacuna
