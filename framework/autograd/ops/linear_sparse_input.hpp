// The linear operation for activations that are N:M sparse and a weight that is dense.
#pragma once

#include "lacuna/framework/autograd/variable.h"
#include "lacuna/framework/param/gradient_sink.h"

namespace lacuna {

/// Whether `linear` should run the sparse products: x is N:M sparse, the weight is dense, and the
/// sizes are such that they are the faster ones. A function of format and shapes alone, so that
/// training, evaluation and a resumed run take the same products.
bool linear_sparse_input_pays(const Variable& x, const WeightReference& weight);

/// Y = X Wᵀ + b as `linear` gives it, to rounding. All three products skip what x does not hold
/// (kernels/nm/nm_activations.hpp); the input gradient is dY W in x's slots and zero elsewhere,
/// which is what x's own operation passes on. A zero of x times an infinite or NaN weight or
/// gradient may be nothing instead of NaN. *Requires* shapes that fit, x.nm(), and a weight in
/// layout dense. *Saves:* x's slots, not x. The weight keeps a copy of its values in slabs of
/// outputs.
Variable linear_sparse_input(const Variable& x, const WeightReference& weight,
                             const Variable& bias);

}  // namespace lacuna
