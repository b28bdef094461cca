// The beginning of a schedule that prunes an N:M pattern gradually: groups that are still full.
#pragma once

#include <cstdint>
#include <optional>

#include "lacuna/sparsity/masks/mask_init.h"
#include "lacuna/sparsity/options/target.h"
#include "lacuna/sparsity/weights/sparse_weight.h"

namespace lacuna {

/// Whether a target prunes from the first mask on, whatever the pattern.
bool begins_pruned(const SparsityTarget& target);

/// The first mask of a weight whose target is above n of m: some groups of m are pruned to n, by
/// the init method or, if the mask is inherited, by |w|; the others stay full. Nothing if the
/// target is not above n of m, the init method does not choose positions, or an inherited mask
/// already has fewer nonzeros or the pattern. *Cost:* O(elements).
std::optional<MaskSet> mask_with_full_groups(const SparseWeight& weight, MaskSource source,
                                             const InitMethod& init_method, uint64_t seed);

}  // namespace lacuna
