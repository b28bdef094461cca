// One-shot pruning of one layer: which of its weights stay, and what they become, by the layer's
// inputs. How inputs are collected, and which layers are pruned when, is for others.
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
/// arXiv:2306.11695). SparseGpt prunes column by column and lets the columns that follow make up
/// for what was pruned (Frantar and Alistarh, 2023, arXiv:2301.00774). Admm alternates between the
/// best weights and the best mask (Boža, 2024, arXiv:2401.02938).
enum class OneShotMethod { Magnitude, Wanda, SparseGpt, Admm };
/// "magnitude", "wanda", "sparsegpt", "admm".
const char* to_string(OneShotMethod method);

/// Which positions compete if no pattern determines it: the positions of the whole layer (of
/// sparsegpt: those of each block of columns), or those of each output row.
enum class OneShotGranularity { Layer, Row };
const char* to_string(OneShotGranularity granularity);  ///< "layer", "row"

/// How far a row's grid of int8 steps reaches: to its largest |w|, or to the reach from there down
/// to a fifth of it that loses the fewest squares, when larger weights are clipped to it.
enum class GridClip { Max, Mse };

/// How one layer is pruned. `defaults` gives those of each method's authors.
struct OneShotOptions {
  OneShotMethod method = OneShotMethod::Wanda;
  /// Of unstructured pruning alone. Row for wanda, as its authors have it, and Layer for the others
  /// (admm loses less so than by rows, as golden/one_shot_test.cpp's layers show).
  OneShotGranularity granularity = OneShotGranularity::Layer;
  /// A `damping` that is chosen by the inputs: as a part of each element of the diagonal, and the
  /// larger the fewer rows there are (docs/guides/pruning.md).
  static constexpr double kAutomaticDamping = std::numeric_limits<double>::infinity();
  /// Added to the Gram matrix's diagonal, as a part of the diagonal's mean, dead inputs counted as
  /// zeros. Automatic for sparsegpt (its authors: 0.01, ModelOpt: 0.1), and 0.1 for admm, whose
  /// Gram matrix has a diagonal of ones. Where a factorization fails it is raised tenfold, with a
  /// message.
  double damping = kAutomaticDamping;
  /// Columns that sparsegpt prunes at a time: a multiple of the pattern's columns is taken.
  int64_t block = 128;
  /// Rounds of admm, and those of them in which the sparsity rises to its end.
  int rounds = 20;
  int gradual_rounds = 15;
  /// What the sparsity rises to in those rounds, of each row or of the layer: for callers that know
  /// it more exactly than the counts, as 0.9 of 64 positions is 0.89. Empty: that of the counts.
  std::optional<double> sparsity{};
  /// The weight of admm's penalty.
  double rho = 1.0;
  /// Fits what is kept anew, whatever chose it: the weights of least output error on the mask. That
  /// of admm is improved by swaps first, row by row, as long as one lowers the error.
  bool least_squares = false;
  /// Of the least squares, as a part of the diagonal's mean.
  double least_squares_damping = 0.0;
  /// How many positions each output row (Granularity Row) or each block of columns (sparsegpt with
  /// Granularity Layer) keeps; empty: shares as equal as they can be. Their sum is `keep`.
  std::vector<int64_t> keep_of_parts{};
  /// Of sparsegpt: what a step of int8 is worth in each output row (one_shot/weight_grid.hpp). What
  /// is kept becomes a multiple of it, and the columns that follow make up for that too, as in GPTQ
  /// (Frantar et al., 2022, arXiv:2210.17323). Empty: weights stay as they are.
  std::vector<float> grid_scales{};
  /// Of linear layers: what is kept becomes multiples of int8 steps, whose scales are found
  /// (PrunedWeight::grid_scales), with the mask at once (one_shot/prune_to_grid.hpp). Empty:
  /// weights stay float32.
  std::optional<GridClip> grid{};
  /// With `grid`: each weight is rounded by itself, and not by the sweep.
  bool rounds_to_nearest = false;
  /// Of admm: the rounds whose mask is the last one project what is kept onto such a grid.
  std::optional<GridClip> grid_in_rounds{};

  static OneShotOptions defaults(OneShotMethod method);
};

/// A pruned layer.
struct PrunedWeight {
  Tensor weight;  ///< in the shape that was given; zeros where the mask has none
  MaskSet mask;
  double relative_error = 0.0;          ///< as relative_output_error
  std::vector<std::string> messages{};  ///< what the user should know: damping that was raised
  std::vector<float> grid_scales{};     ///< with OneShotOptions::grid: a step of each output row
};

/// Prunes one layer to `keep` positions, chosen among those of `present` (null: all); those that
/// are not present count as zeros. Counts are exact and ties go to the lowest index, but an N:M
/// pattern keeps no more than its cells and `present` allow. A pattern's units compete by the sum
/// of their positions' scores, and it is for `selector` to choose among them.
///
/// Inputs that were zero in every row (dead ones) take no part: their weights are the first to go
/// by wanda, sparsegpt and admm, sparsegpt makes those that it keeps zero as its authors do, and
/// the others leave them as they were.
///
/// *Shapes:* weight [out, in] or [out, in / groups, kh, kw], the selector's; the Gram matrix has as
/// many features as the weight as a matrix has columns, in their order (InputGram). A grouped
/// convolution's groups are pruned one by one.
/// *Errors:* begin with the layer's name. ShapeError where sizes differ; ConfigError for counts and
/// options that cannot be; DataError for values that are not finite, for a Gram matrix without
/// rows, and where a factorization fails whatever the damping.
/// *Cost:* magnitude and wanda: one selection. sparsegpt: in³ and out · in² operations. admm: in³
/// and 2 · rounds · out · in². Least squares: out · k³ / 3, k what a row keeps, or in³ + out · k³ /
/// 3 with k what a row prunes, where that is less; the swaps of admm with least squares 0.8 · out ·
/// k³. Memory: sparsegpt, admm and least squares take
/// in² doubles next to the Gram matrix, and all a few copies of the weight. Results do not depend
/// on the number of threads.
PrunedWeight prune_one_shot(const std::string& layer, const Tensor& weight, const InputGram& gram,
                            const MaskSelector& selector, int64_t keep, const MaskSet* present,
                            const OneShotOptions& options);

/// The weights on `mask` whose outputs are nearest to those of `weight`: of each row
/// (H_SS + damping · mean of H's diagonal · I) w_S = (H w)_S with S its positions in the mask and H
/// the Gram matrix. Rows of one support share a factorization. Weights of dead inputs stay, and
/// where damping must be raised, what is added pulls to `weight` and not to zero. Shapes, errors as
/// prune_one_shot.
PrunedWeight fit_least_squares(const std::string& layer, const Tensor& weight,
                               const InputGram& gram, const MaskSet& mask, double damping = 0.0);

/// The effect of pruning on a layer's outputs. Those of several layers, as of a convolution's
/// groups, add up.
struct OutputError {
  double outputs = 0.0;  ///< ‖XWᵀ‖²
  double lost = 0.0;     ///< ‖X(Ŵ − W)ᵀ‖²

  /// lost / outputs; 0 where both are 0, and ∞ where only the latter is.
  double relative() const;
};
/// In double. For independent inputs these are ‖W‖² and ‖Ŵ − W‖². *Errors:* ShapeError. *Cost:*
/// 4 · out · in² operations, of independent inputs 4 · out · in; two times 256 · in doubles.
OutputError output_error(const Tensor& weight, const Tensor& pruned, const InputGram& gram);
/// Its `relative`.
double relative_output_error(const Tensor& weight, const Tensor& pruned, const InputGram& gram);

}  // namespace lacuna
