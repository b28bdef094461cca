// OneShotProblem: one layer as the methods see it, checked; and the choice of what stays by scores.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "lacuna/framework/core/parallel.h"
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

/// Calls body(0) … body(count − 1), each of which holds `size` doubles at most: on as many threads
/// at a time as `most` doubles are enough for, and one after the other, with all threads in each,
/// where they are enough for one alone.
template <class Body>
void for_each_within(int64_t most, int64_t count, int64_t size, const Body& body) {
  const int64_t at_a_time = std::min<int64_t>(num_threads(), most / std::max<int64_t>(size, 1));
  if (at_a_time <= 1) {
    for (int64_t i = 0; i < count; ++i) body(i);
  } else if (at_a_time == num_threads()) {
    parallel_blocks(count, body);
  } else {
    parallel_blocks(at_a_time, [&](int64_t first) {
      for (int64_t i = first; i < count; i += at_a_time) body(i);
    });
  }
}

}  // namespace lacuna
