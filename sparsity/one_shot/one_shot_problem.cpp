#include "lacuna/sparsity/one_shot/one_shot_problem.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

#include "lacuna/framework/core/array.h"
#include "lacuna/framework/core/error.h"
#include "lacuna/framework/core/parallel.h"
#include "lacuna/framework/core/plural.hpp"
#include "lacuna/sparsity/masks/scores.h"

namespace lacuna {

std::string of_layer(const std::string& layer) { return "layer '" + layer + "': "; }

void require_layer(const std::string& layer, const Tensor& weight, const InputGram& gram,
                   const Shape& mask) {
  const Shape& shape = weight.shape();
  if (shape.rank() < 2 || mask != shape) {
    throw ShapeError(
        fmt::format("{}a weight of shape {} needs two dimensions or more and a mask of "
                    "its shape, found a mask of shape {}",
                    of_layer(layer), shape.to_string(), mask.to_string()));
  }
  if (matrix_columns(shape) != gram.features()) {
    throw ShapeError(fmt::format("{}a weight of shape {} has {}, but its calibration has {}",
                                 of_layer(layer), shape.to_string(),
                                 plural(matrix_columns(shape), "input"),
                                 plural(gram.features(), "feature")));
  }
  // A sum of squares is finite where all of the column is.
  const std::vector<double> squares = gram.squares();
  if (gram.rows() == 0 && gram.features() > 0) {
    throw DataError(of_layer(layer) +
                    "its calibration has no rows: the examples give it no input; "
                    "give more or other ones (`calibration`)");
  }
  for (size_t i = 0; i < squares.size(); ++i) {
    if (!std::isfinite(squares[i]) || squares[i] < 0.0) {
      throw DataError(
          fmt::format("{}its calibration inputs hold values that are not finite, or too large to "
                      "be squared, in "
                      "feature {} first; look for such values in the training data and in the "
                      "weights of the layers before it",
                      of_layer(layer), i));
    }
  }
  const std::span<const float> values = weight.storage();
  const auto bad = std::ranges::find_if(values, [](float w) { return !std::isfinite(w); });
  if (bad != values.end()) {
    throw DataError(
        fmt::format("{}its weight holds values that are not finite, at {} first; begin with "
                    "a checkpoint without such values",
                    of_layer(layer), bad - values.begin()));
  }
}

std::vector<int64_t> equal_shares(std::span<const int64_t> present, int64_t keep) {
  std::vector<int64_t> shares(present.size(), 0);
  while (keep > 0) {
    int64_t open = 0;
    for (size_t i = 0; i < shares.size(); ++i) open += shares[i] < present[i];
    if (open == 0) break;
    const int64_t each = std::max<int64_t>(keep / open, 1);
    for (size_t i = 0; i < shares.size() && keep > 0; ++i) {
      const int64_t more = std::min({each, present[i] - shares[i], keep});
      shares[i] += more;
      keep -= more;
    }
  }
  return shares;
}

std::vector<int64_t> proportional_shares(std::span<const int64_t> present, int64_t keep) {
  const int64_t all = std::accumulate(present.begin(), present.end(), int64_t{0});
  std::vector<int64_t> shares;
  int64_t seen = 0, given = 0;
  for (const int64_t count : present) {
    seen += count;
    // In two parts, so that the products stay in 64 bits.
    const int64_t until = all == 0 ? 0 : keep / all * seen + keep % all * seen / all;
    shares.push_back(until - given);
    given = until;
  }
  return shares;
}

std::vector<int64_t> row_counts(const MaskSet& mask) {
  const std::span<const int64_t> begin = mask.positions().row_begin();
  std::vector<int64_t> counts(begin.size() - 1);
  for (size_t r = 0; r < counts.size(); ++r) counts[r] = begin[r + 1] - begin[r];
  return counts;
}

MaskSet keep_of_rows(const MaskSet& present, std::span<const float> scores,
                     std::span<const int64_t> keep) {
  const Positions& positions = present.positions();
  const int64_t columns = positions.columns();
  std::vector<int64_t> begin(keep.size() + 1, 0);
  std::partial_sum(keep.begin(), keep.end(), begin.begin() + 1);
  Array<uint32_t> kept(static_cast<size_t>(begin.back()));
  parallel_for(positions.rows(), 16, [&](int64_t first, int64_t last) {
    std::vector<uint32_t> row;
    for (int64_t r = first; r < last; ++r) {
      const float* of_row = scores.data() + r * columns;
      const std::span<const uint32_t> all = positions.row(r);
      row.assign(all.begin(), all.end());
      const auto end = row.begin() + static_cast<ptrdiff_t>(keep[static_cast<size_t>(r)]);
      if (end != row.begin() && end != row.end()) {
        std::nth_element(row.begin(), end - 1, row.end(), [&](uint32_t a, uint32_t b) {
          const float x = std::abs(of_row[a]), y = std::abs(of_row[b]);
          return x != y ? x > y : a < b;
        });
      }
      std::sort(row.begin(), end);
      std::copy(row.begin(), end, kept.begin() + begin[static_cast<size_t>(r)]);
    }
  });
  return MaskSet(present.shape(), Positions(present.shape(), std::move(begin), std::move(kept)));
}

MaskSet keep_largest(const OneShotProblem& problem, std::span<const float> scores, int64_t keep,
                     std::span<const int64_t> of_rows) {
  if (problem.by_rows()) return keep_of_rows(problem.present, scores, of_rows);
  const MaskSet& present = problem.present;
  if (present.count() == present.size()) {
    // A unit's score is the norm of its positions' scores, whatever their signs.
    const bool has_norms = problem.selector.pattern().is_structured();
    return has_norms ? problem.selector.keep(present, scores, keep)
                     : problem.selector.keep(present, magnitudes(scores), keep);
  }
  std::vector<float> own(static_cast<size_t>(present.count()));
  size_t place = 0;
  present.positions().for_each(
      [&](int64_t i) { own[place++] = std::abs(scores[static_cast<size_t>(i)]); });
  return problem.selector.keep(present, own, keep);
}

std::vector<int64_t> shares_of_rows(const OneShotProblem& problem, int64_t keep) {
  if (!problem.by_rows()) return {};
  if (keep == problem.keep && !problem.options.keep_of_parts.empty()) {
    return problem.options.keep_of_parts;
  }
  return equal_shares(row_counts(problem.present), keep);
}

Tensor masked(const MaskSet& mask, std::span<const float> values) {
  Tensor out = Tensor::zeros(mask.shape());
  float* into = out.mutable_data();
  mask.positions().for_each([&](int64_t i) { into[i] = values[static_cast<size_t>(i)]; });
  return out;
}

}  // namespace lacuna
