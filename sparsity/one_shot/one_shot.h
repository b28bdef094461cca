// One-shot pruning of one layer: selects and updates its weights by the layer's inputs. Collecting
// the inputs and the order of the layers belong elsewhere.
#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "lacuna/framework/core/tensor.h"
#include "lacuna/framework/layouts/mask_set.h"
#include "lacuna/sparsity/masks/mask_selector.h"
#include "lacuna/sparsity/one_shot/input_gram.h"

namespace lacuna {

/// Magnitude keeps the largest |w|. Wanda keeps the largest |w|·‖x‖ (Sun et al., 2023,
/// arXiv:2306.11695). SparseGpt prunes column by column, and the following columns compensate for
/// the pruned weights (Frantar and Alistarh, 2023, arXiv:2301.00774). Admm alternates between the
/// best weights and the best mask (Boža, 2024, arXiv:2401.02938).
enum class OneShotMethod { Magnitude, Wanda, SparseGpt, Admm };
/// "magnitude", "wanda", "sparsegpt", "admm".
const char* to_string(OneShotMethod method);

/// Which positions compete if no pattern determines it: the positions of the whole layer (in
/// sparsegpt, of each block of columns), or of each output row.
enum class OneShotGranularity { Layer, Row };
const char* to_string(OneShotGranularity granularity);  ///< "layer", "row"

/// The range of a row's grid of int8 steps: its largest |w|, or the range between that and a fifth
/// of it with the least squared error, to which larger weights are clipped.
enum class GridClip { Max, Mse };

/// How one layer is pruned. `defaults` returns the values of each method's authors.
struct OneShotOptions {
  OneShotMethod method = OneShotMethod::Wanda;
  /// Only for unstructured pruning. Row for wanda, as in its paper, and Layer for the others (admm
  /// has less error than by rows, see the layers of golden/one_shot_test.cpp).
  OneShotGranularity granularity = OneShotGranularity::Layer;
  /// A `damping` that is chosen from the inputs: a fraction of each element of the diagonal, which
  /// grows as the number of rows falls (docs/guides/pruning.md).
  static constexpr double kAutomaticDamping = std::numeric_limits<double>::infinity();
  /// Added to the Gram matrix's diagonal, as a fraction of the diagonal's mean, in which dead
  /// inputs count as zeros. Automatic for sparsegpt (its authors: 0.01, ModelOpt: 0.1), and 0.1 for
  /// admm, whose Gram matrix has a diagonal of ones. If a factorization fails, it is multiplied by
  /// ten, with a message.
  double damping = kAutomaticDamping;
  /// Columns that sparsegpt prunes at a time, rounded to a multiple of the pattern's columns.
  int64_t block = 128;
  /// Rounds of admm, and the number of them in which the sparsity rises to its final value.
  int rounds = 20;
  int gradual_rounds = 15;
  /// The final sparsity in those rounds, of each row or of the layer, for callers that know it more
  /// exactly than the counts do (0.9 of 64 positions is 0.89). Empty: that of the counts.
  std::optional<double> sparsity{};
  /// The weight of admm's penalty.
  double rho = 1.0;
  /// Refits the kept weights: the weights of least output error on the mask. The mask of admm is
  /// first improved by swaps, row by row, as long as one lowers the error.
  bool least_squares = false;
  /// Damping of the least squares, as a fraction of the diagonal's mean.
  double least_squares_damping = 0.0;
  /// How many positions each output row (Granularity Row) or each block of columns (sparsegpt with
  /// Granularity Layer) keeps; empty: shares as equal as possible. Their sum is `keep`.
  std::vector<int64_t> keep_of_parts{};
  /// For sparsegpt: the int8 step of each output row (one_shot/weight_grid.hpp). Kept weights
  /// become multiples of it, and the following columns compensate for the rounding, too, as in GPTQ
  /// (Frantar et al., 2022, arXiv:2210.17323). Empty: weights are not rounded.
  std::vector<float> grid_scales{};
  /// For linear layers: kept weights become multiples of int8 steps, whose scales
  /// (PrunedWeight::grid_scales) are found together with the mask (one_shot/prune_to_grid.hpp).
  /// Empty: weights stay float32.
  std::optional<GridClip> grid{};
  /// With `grid`: each weight is rounded on its own, not by the sweep.
  bool rounds_to_nearest = false;
  /// For admm: the rounds with the final mask project the kept weights onto such a grid.
  std::optional<GridClip> grid_in_rounds{};

  static OneShotOptions defaults(OneShotMethod method);
};

/// A pruned layer.
struct PrunedWeight {
  Tensor weight;  ///< in the given shape; zero outside the mask
  MaskSet mask;
  double relative_error = 0.0;          ///< as relative_output_error
  std::vector<std::string> messages{};  ///< messages for the user: damping that was raised
  std::vector<float> grid_scales{};     ///< with OneShotOptions::grid: the step of each output row
};

/// Prunes one layer to `keep` positions, chosen among those of `present` (null: all); those that
/// are not present count as zeros. Counts are exact and ties go to the lowest index, but an N:M
/// pattern keeps no more than its cells and `present` allow. A pattern's units compete by the sum
/// of their positions' scores; `selector` chooses among them.
///
/// Inputs that are zero in every row (dead inputs) do not affect the result: wanda, sparsegpt and
/// admm prune their weights first; sparsegpt sets the kept ones to zero, as in its paper, and the
/// other methods do not change them.
///
/// *Shapes:* weight [out, in] or [out, in / groups, kh, kw], the selector's; the Gram matrix has as
/// many features as the weight as a matrix has columns, in their order (InputGram). A grouped
/// convolution's groups are pruned one by one. *Errors:* begin with the layer's name. ShapeError
/// where sizes differ; ConfigError for invalid counts and options; DataError for values that are
/// not finite, for a Gram matrix without rows, and if a factorization fails with any damping.
/// *Cost:* magnitude and wanda: one selection. sparsegpt: in³ and out · in² operations. admm: in³
/// and 2 · rounds · out · in². Least squares: out · k³ / 3, with k kept weights per row, or in³ +
/// out · k³ / 3 with k pruned weights per row, whichever is less; the swaps of admm with least
/// squares 0.8 · out · k³. Memory: sparsegpt, admm and least squares take in² doubles next to the
/// Gram matrix, and all methods a few copies of the weight. Results do not depend on the number of
/// threads.
PrunedWeight prune_one_shot(const std::string& layer, const Tensor& weight, const InputGram& gram,
                            const MaskSelector& selector, int64_t keep, const MaskSet* present,
                            const OneShotOptions& options);

/// The weights on `mask` whose outputs are nearest to those of `weight`: for each row (H_SS +
/// damping · mean of H's diagonal · I) w_S = (H w)_S with S its positions in the mask and H the
/// Gram matrix. Rows of one support share a factorization. Weights of dead inputs do not change,
/// and if damping must be raised, the additional part pulls towards `weight` and not towards zero.
/// *Shapes, errors:* as prune_one_shot.
PrunedWeight fit_least_squares(const std::string& layer, const Tensor& weight,
                               const InputGram& gram, const MaskSet& mask, double damping = 0.0);

/// The effect of pruning on a layer's outputs. The effects on several layers, or on a convolution's
/// groups, add up.
struct OutputError {
  double outputs = 0.0;  ///< ‖XWᵀ‖²
  double lost = 0.0;     ///< ‖X(Ŵ − W)ᵀ‖²

  /// lost / outputs; 0 if both are 0, and ∞ if only the latter is.
  double relative() const;
};
/// In double. For independent inputs these are ‖W‖² and ‖Ŵ − W‖². *Errors:* ShapeError. *Cost:* 4 ·
/// out · in² operations, for independent inputs 4 · out · in; two times 256 · in doubles.
OutputError output_error(const Tensor& weight, const Tensor& pruned, const InputGram& gram);
/// The `relative` of output_error.
double relative_output_error(const Tensor& weight, const Tensor& pruned, const InputGram& gram);

}  // namespace lacuna
