// Scores: the values by which positions are kept, dropped and grown.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <utility>
#include <vector>

#include "lacuna/framework/core/shards.h"
#include "lacuna/framework/core/tensor.h"

namespace lacuna {

/// |values[i]|.
std::vector<float> magnitudes(std::span<const float> values);
/// Replaces each value by its magnitude.
void take_magnitudes(std::span<float> values);
/// |a[i]·b[i]|. *Requires* equal sizes.
Tensor magnitudes_of_products(const Tensor& a, const Tensor& b);

/// Returns the scores of some rows of a matrix, one row after the other, so that a whole matrix of
/// scores is never needed.
using ScoreRows = std::function<void(std::span<const int64_t> rows, std::span<float> into)>;
/// Returns scores of rows that are sums over several processes: `rows` has rows for each process,
/// by rank; this process gets its own. Collective.
using SharedScoreRows =
    std::function<void(std::span<const std::vector<int64_t>> rows, std::span<float> into)>;

/// The scores of a matrix's positions, by rows.
struct Scores {
  /// Only of this process.
  Scores(ScoreRows rows)
      : own_rows(
            [all = std::move(rows)](std::span<const std::vector<int64_t>> of_processes,
                                    std::span<float> into) { all(of_processes.front(), into); }) {}
  /// Of several processes. *Lifetime:* these outlive it.
  Scores(SharedScoreRows rows, ShardPeers& with) : own_rows(std::move(rows)), peers(&with) {}

  int rank() const { return peers == nullptr ? 0 : peers->rank(); }
  int processes() const { return peers == nullptr ? 1 : peers->size(); }

  SharedScoreRows own_rows;
  ShardPeers* peers = nullptr;  ///< null: this process is alone
};

/// The rows of an array as scores. Dimension 0 is the rows. Shares the array's memory. *Errors:*
/// ShapeError, when the rows are asked for, if the array does not have them.
ScoreRows rows_of(const Tensor& array);

}  // namespace lacuna
