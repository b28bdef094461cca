// The beginning of a schedule that prunes an N:M pattern gradually: groups that are still full.
#pragma once

#include <optional>

#include "lacuna/sparsity/algorithm.h"

namespace lacuna {

/// `begins_sparse` of an algorithm that prunes gradually: with an N:M pattern, only a schedule that
/// begins above 0 does.
bool begins_pruned(const SparsityAlgorithm& algorithm, const SparsityOptions& options);

/// The first mask of a weight whose target is above n of m: some groups of m are pruned to n, by
/// the init method or, if the mask is inherited, by |w|; the others stay full. Nothing if the
/// target is not above n of m, the init method does not choose positions, or an inherited mask
/// already has fewer nonzeros or the pattern. *Cost:* O(elements).
std::optional<MaskSet> mask_with_full_groups(const SparseWeight& weight, MaskSource source,
                                             const SparsityOptions& options);

}  // namespace lacuna
