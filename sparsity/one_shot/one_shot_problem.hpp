// OneShotProblem: one layer as the methods see it, checked; and the choice of what stays by scores.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "lacuna/framework/core/tensor.h"
#include "lacuna/framework/layouts/mask_set.h"
#include "lacuna/sparsity/masks/mask_selector.h"
#include "lacuna/sparsity/one_shot/input_gram.h"
#include "lacuna/sparsity/one_shot/one_shot.h"

namespace lacuna {

/// What prune_one_shot was given. `weight` has zeros where nothing is present.
struct OneShotProblem {
  const std::string& layer;
  Tensor weight;
  int64_t rows, columns;
  const InputGram& gram;
  std::vector<double> squares;  ///< of the inputs, a feature each
  const MaskSelector& selector;
  int64_t keep;
  MaskSet present;
  const OneShotOptions& options;

  bool by_rows() const {
    return options.granularity == OneShotGranularity::Row && !selector.pattern().is_structured();
  }
};

/// "layer 'fc1': ".
std::string of_layer(const std::string& layer);
/// *Errors:* ShapeError where the weight is no matrix, the mask's shape is another or the Gram
/// matrix has other features; DataError for values that are not finite and for no rows.
void require_layer(const std::string& layer, const Tensor& weight, const InputGram& gram,
                   const Shape& mask);

/// Shares of `keep`, as equal as `present` allows, the first ones get what is left over. *Requires*
/// keep ≤ the sum of `present`.
std::vector<int64_t> equal_shares(std::span<const int64_t> present, int64_t keep);
/// Shares of `keep` in proportion to `present`.
std::vector<int64_t> proportional_shares(std::span<const int64_t> present, int64_t keep);
/// How many positions of each row a set holds.
std::vector<int64_t> row_counts(const MaskSet& mask);

/// Of each row's present positions the `keep[row]` with the largest scores, ties by the lowest
/// index. *Shapes:* scores [rows, columns]. *Cost:* O(present).
MaskSet keep_of_rows(const MaskSet& present, std::span<const float> scores,
                     std::span<const int64_t> keep);
/// What is kept of the present positions of a problem by scores, one for each position of the
/// matrix, negative ones by magnitude. `keep_of_rows` is what by_rows() keeps and `keep` the rest.
MaskSet keep_largest(const OneShotProblem& problem, std::span<const float> scores, int64_t keep,
                     std::span<const int64_t> keep_of_rows);
/// The problem's counts: of rows those of the options, or equal shares of `keep`.
std::vector<int64_t> shares_of_rows(const OneShotProblem& problem, int64_t keep);

/// `values` where the mask has positions, zero elsewhere. *Shapes:* as the mask's.
Tensor masked(const MaskSet& mask, std::span<const float> values);

}  // namespace lacuna
