// Draws of an epoch in which each class comes equally often.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace lacuna {

/// As many draws as there are labels, a pure function of (labels, seed, epoch): each of the K
/// classes with a label gets ⌊n / K⌋ of them, and n mod K classes, others in each epoch, get one
/// more. A class's examples follow each other in an order of the epoch, again from the first when
/// all were drawn: none comes twice more often than another. The draws stand class after class.
/// Labels of kIgnoredLabel are of no class, and never drawn. *Errors:* DataError where that are all
/// of them.
std::vector<int64_t> balanced_draws(std::span<const int64_t> labels, uint64_t seed, int64_t epoch);

}  // namespace lacuna
