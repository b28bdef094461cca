// The gated unit of SiLU: half of the features gate the other half.
#pragma once

#include <cstdint>

namespace lacuna {

/// y = silu(gate) · up for a row [gate | up] of x. *Shapes:* x [rows, 2 count], y [rows, count]; a
/// slab of the batch is a row of 64 · features. *Source:* Shazeer, arXiv:2002.05202.
void swiglu(int64_t rows, int64_t count, const float* x, float* y);

/// d gate = dy up σ(gate) (1 + gate (1 − σ(gate))), d up = dy silu(gate). *Shapes:* dy [rows,
/// count], dx as x; dx must not be one of the inputs.
void swiglu_gradient(int64_t rows, int64_t count, const float* x, const float* dy, float* dx);

}  // namespace lacuna
