// Factorizations of Gram matrices, damped as far as they need it.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace lacuna {

/// The smallest pivot, as a part of its diagonal element, that is more than the rounding of the
/// Gram matrix's products in float32; and the damping that the first raise from nothing is to.
inline constexpr double kSmallestPivot = 1e-6;

/// The damping after `damping` where a factorization failed: ten times as much.
double raised(double damping);
/// Whether there is no use in raising it further.
bool is_hopeless(double damping);

/// Damping as messages show it: of ten times 1e-6 what a float says, and not the digits of the last
/// rounding.
float shortest(double damping);

/// Calls `factor(damping)`, which says whether it succeeded, with `damping` and, as long as it
/// fails, with ten times as much. Returns what was enough; adds a message when it was raised.
/// *Errors:* DataError that begins with `whose` when nothing is.
double factor_damped(const std::string& whose, double damping,
                     const std::function<bool(double)>& factor, std::vector<std::string>& messages);

}  // namespace lacuna
