// Factorizations of symmetric positive definite matrices in double.
#pragma once

#include <cstdint>

namespace lacuna {

/// Replaces the lower triangle of A [n, n], row-major, by L with A = L·Lᵀ; elements above the
/// diagonal are neither read nor written. Returns n, or the number of the first pivot that is NaN
/// or not above `smallest` times its original diagonal element; A is then partly overwritten.
/// *Cost:* n³ / 3 operations, in parallel by tiles; the result does not depend on the number of
/// threads.
int64_t cholesky(int64_t n, double* matrix, double smallest = 1e-13);

/// Replaces L by its inverse, which is lower triangular too. *Requires* zeros above the diagonal.
/// *Cost:* n³ / 3 operations, in parallel by tiles; n · 64 doubles.
void invert_lower(int64_t n, double* lower);

/// Replaces L by the lower triangle of Lᵀ·L. For the inverse of a Cholesky factor, this is the
/// inverse of the factored matrix. Nothing is written above the diagonal. *Requires* zeros above
/// the diagonal. *Cost:* n³ / 3 operations, in parallel by tiles; n · 256 doubles.
void square_lower(int64_t n, double* lower);

/// Solves L·Lᵀ x = b in place, L the lower triangle. *Cost:* 2·n² operations, in one thread.
void solve_factored(int64_t n, const double* lower, double* x);

}  // namespace lacuna
