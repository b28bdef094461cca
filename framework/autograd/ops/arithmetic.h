// Sums, differences and products, element by element.
#pragma once

#include "lacuna/framework/autograd/variable.h"

namespace lacuna {

// *Shapes:* a and b broadcast by NumPy's rules: aligned at the last dimension, sizes equal or one
// of them 1. The gradient of a repeated input is the sum over its repetitions. Inputs of one shape
// and storage order keep the order. *Errors:* ShapeError with the op's name and both shapes.

/// y = a + b.
Variable add(const Variable& a, const Variable& b);
/// y = a − b.
Variable subtract(const Variable& a, const Variable& b);
/// y = a · b.
Variable multiply(const Variable& a, const Variable& b);
/// y = factor · x. *Shapes:* any.
Variable scale(const Variable& x, float factor);

inline Variable operator+(const Variable& a, const Variable& b) { return add(a, b); }
inline Variable operator-(const Variable& a, const Variable& b) { return subtract(a, b); }
inline Variable operator*(const Variable& a, const Variable& b) { return multiply(a, b); }
inline Variable operator-(const Variable& x) { return scale(x, -1.0f); }

}  // namespace lacuna
