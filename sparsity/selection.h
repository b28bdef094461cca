// Selections: exact top-k, drop, grow and random sampling, over masks and over positions. Pure
// functions; ties go to the lower flat index; never a position that the mask excludes.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "lacuna/framework/core/bit_mask.h"
#include "lacuna/framework/core/random.h"
#include "lacuna/framework/core/tensor.h"
#include "lacuna/framework/layouts/positions.h"
#include "lacuna/sparsity/score_groups.h"

namespace lacuna {

/// Nonzeros that a sparsity in [0, 1] leaves of `numel`: int((1 − s)·numel) in float32, truncated.
int64_t target_nnz(float sparsity, int64_t numel);
/// Kept of `nnz` nonzeros in each of `groups`: int((1 − f)·nnz / groups) in float32, truncated.
int64_t kept_after_drop(float drop_fraction, int64_t nnz, int64_t groups = 1);

/// |values[i]|.
std::vector<float> magnitudes(std::span<const float> values);
/// The same in place.
void take_magnitudes(std::span<float> values);
/// |a[i]·b[i]|. *Requires* equal sizes.
std::vector<float> products(std::span<const float> a, std::span<const float> b);

/// The `per_group` allowed positions with the largest scores in each group (all that are allowed,
/// where these are fewer). NaN ranks below everything. *Cost:* O(numel), radix selection.
BitMask top_k(std::span<const float> scores, int64_t per_group, const BitMask& allowed,
              const GroupIndex& groups);
/// The same over all positions in one competition.
BitMask top_k(std::span<const float> scores, int64_t count);

/// `mask` without its smallest scores: the `per_group` largest stay in each group.
BitMask drop_minimum(std::span<const float> scores, int64_t per_group, const BitMask& mask,
                     const GroupIndex& groups);
/// `mask` and the positions outside it with the largest scores, until each group has `per_group`.
/// A group that has as many already stays as it is.
BitMask grow_maximum(std::span<const float> scores, int64_t per_group, const BitMask& mask,
                     const GroupIndex& groups);
/// `mask` and positions outside it drawn without replacement, uniformly, until each group has
/// `per_group`. A function of the generator's key and the mask alone. *Cost:* O(drawn) where the
/// mask is sparse, O(numel) bits otherwise.
BitMask grow_random(const CounterRng& rng, int64_t per_group, const BitMask& mask,
                    const GroupIndex& groups);

// The same over positions, in time and memory that follow their number.

/// The `per_group` present positions with the largest scores in each group. `scores` has one entry
/// per present position, ascending by flat index, as Parameter::compacted gives them.
/// *Errors:* ShapeError when their number differs. *Cost:* O(count).
Positions top_k(const Positions& present, std::span<const float> scores, int64_t per_group,
                const GroupIndex& groups);

/// Gives the scores of some rows of a matrix, one row after the other.
using ScoreRows = std::function<void(std::span<const int64_t> rows, std::span<float> into)>;
/// Those of an array. Dimension 0 is the rows.
ScoreRows rows_of(const Tensor& array);

/// `present` and the positions outside it with the largest |score|, until each group has
/// `per_group`. Each row's scores are asked for once or twice, by tiles of rows.
/// *Cost:* O(matrix) time, O(present + chosen + tile) memory; a tile is 2^18 scores or a row.
Positions grow_maximum(const ScoreRows& scores, int64_t per_group, const Positions& present,
                       const GroupIndex& groups);

/// As with masks, and with the same draws. *Memory:* a bit a position for matrices up to 2^30
/// positions that are not too sparse for it, else 13 to 28 bytes a drawn position.
Positions grow_random(const CounterRng& rng, int64_t per_group, const Positions& present,
                      const GroupIndex& groups);

namespace internal {
enum class Membership { Bits, HashSet };  // what a random growth remembers its draws by
Positions grow_random(const CounterRng& rng, int64_t per_group, const Positions& present,
                      const GroupIndex& groups, Membership membership);
}  // namespace internal

}  // namespace lacuna
