// The matrix product of two variables.
#pragma once

#include "lacuna/framework/autograd/variable.h"

namespace lacuna {

/// Y = A B. *Shapes:* a [..., k], b [k, n] → [..., n].
/// *Errors:* ShapeError with both shapes. *Cost:* three dense products with the backward pass.
Variable matmul(const Variable& a, const Variable& b);

/// Products of pairs of matrices: Y[i] = A[i] B[i]. *Shapes:* a [count, m, k], b [count, k, n] →
/// [count, m, n]. *Errors:* ShapeError with both shapes. *Cost:* as matmul, one task per i.
Variable bmm(const Variable& a, const Variable& b);

}  // namespace lacuna
