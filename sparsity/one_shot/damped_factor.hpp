// Factorizations of Gram matrices, damped as far as they need it.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "lacuna/sparsity/one_shot/input_gram.h"

namespace lacuna {

/// The smallest pivot, as a part of its diagonal element, that is more than the rounding of the
/// Gram matrix's products in float32; and the damping that the first raise from nothing is to.
inline constexpr double kSmallestPivot = 1e-6;

/// The amount of damping for OneShotOptions::kAutomaticDamping, a part of each diagonal element: δ
/// with δ / (1 + δ), at most ½, the shrinkage that brings the inputs' correlation matrix nearest to
/// that of all rows which might have been drawn. The fewer the rows, the larger it is; more than 8
/// for each input count as 8, for with less damping than that leads to, SparseGPT loses more on
/// other rows however many there are (docs/guides/pruning.md). Dead inputs take no part. *Cost:*
/// features² operations. *Source:* Chen et al., 2010, eq. 23 (arXiv:0907.4698).
double automatic_damping(const InputGram& gram);

/// The damping after `damping` where a factorization failed: ten times as much.
double raised(double damping);
/// Whether there is no use in raising it further.
bool is_hopeless(double damping);

/// Damping as messages show it: with the digits of a float, so that ten times 1e-6 is 1e-5 in spite
/// of rounding.
float shortest(double damping);

/// Calls `factor(damping)`, which returns whether it succeeded, with `damping` and, as long as it
/// fails, with ten times as much. Returns what was enough; adds a message when it was raised.
/// *Errors:* DataError that begins with `whose` when nothing is.
double factor_damped(const std::string& whose, double damping,
                     const std::function<bool(double)>& factor, std::vector<std::string>& messages);

}  // namespace lacuna
