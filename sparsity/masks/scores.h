// Scores: what positions are kept, dropped and grown by.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "lacuna/framework/core/tensor.h"

namespace lacuna {

/// |values[i]|.
std::vector<float> magnitudes(std::span<const float> values);
/// Replaces each value by its magnitude.
void take_magnitudes(std::span<float> values);
/// |a[i]·b[i]|. *Requires* equal sizes.
Tensor magnitudes_of_products(const Tensor& a, const Tensor& b);

/// Gives the scores of some rows of a matrix, one row after the other, so that a matrix of scores
/// need never be whole.
using ScoreRows = std::function<void(std::span<const int64_t> rows, std::span<float> into)>;
/// Scores that several processes have together, each of its own rows. Calls are collective: all
/// processes make them, in the same order.
class SharedScores {
 public:
  virtual ~SharedScores() = default;
  virtual int rank() const = 0;
  virtual int processes() const = 0;
  /// Scores of the rows that stand for this process in `rows`, which has some for each.
  virtual void own_rows(std::span<const std::vector<int64_t>> rows, std::span<float> into) = 0;
  /// Each process's numbers, by rank.
  virtual std::vector<std::vector<int64_t>> gather(std::span<const int64_t> own) = 0;
};
/// The rows of an array as scores. Dimension 0 is the rows. Shares the array's memory.
ScoreRows rows_of(const Tensor& array);

}  // namespace lacuna
