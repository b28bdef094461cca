#include "lacuna/sparsity/one_shot/one_shot.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <numeric>
#include <utility>

#include "lacuna/framework/core/error.h"
#include "lacuna/sparsity/one_shot/admm.hpp"
#include "lacuna/sparsity/one_shot/one_shot_problem.hpp"
#include "lacuna/sparsity/one_shot/prune_to_grid.hpp"
#include "lacuna/sparsity/one_shot/sparse_gpt.hpp"
#include "lacuna/sparsity/one_shot/swap_search.hpp"

namespace lacuna {
namespace {

void require_options(const OneShotProblem& problem) {
  const OneShotOptions& options = problem.options;
  const auto refuse = [&](const std::string& why) {
    throw ConfigError(of_layer(problem.layer) + why);
  };
  if (problem.keep < 0 || problem.keep > problem.present.count()) {
    refuse(fmt::format("cannot keep {} positions of {}", problem.keep, problem.present.count()));
  }
  const int64_t unit = problem.selector.pattern().unit_size() * problem.selector.groups().count();
  if (problem.keep % unit != 0) {
    refuse(fmt::format("{} positions to keep are not a multiple of {}, a unit of every group",
                       problem.keep, unit));
  }
  if (problem.by_rows() && problem.selector.groups().count() > 1) {
    refuse("positions compete in their rows or in score groups, not in both");
  }
  if (!(options.damping >= 0.0) || !(options.least_squares_damping >= 0.0)) {
    refuse("damping must be at least 0");
  }
  if (options.sparsity && !(*options.sparsity >= 0.0 && *options.sparsity <= 1.0)) {
    refuse("sparsity must be in [0, 1]");
  }
  if (options.block < 1 || options.rounds < 1 || options.gradual_rounds < 0 ||
      !(options.rho > 0.0)) {
    refuse("block, rounds and rho must be above 0, gradual_rounds at least 0");
  }
  if (options.grid_scales.empty()) return;
  if (options.method != OneShotMethod::SparseGpt || options.least_squares) {
    refuse("only sparsegpt without least squares rounds weights to a grid");
  }
  if (static_cast<int64_t>(options.grid_scales.size()) != problem.rows) {
    refuse(fmt::format("{} scales of a grid are not one for each of {} rows",
                       options.grid_scales.size(), problem.rows));
  }
}

// The parts that the counts of the options are of: as many as there are, and no more than is there.
void require_parts(const OneShotProblem& problem) {
  const std::vector<int64_t>& parts = problem.options.keep_of_parts;
  if (parts.empty()) return;
  if (std::accumulate(parts.begin(), parts.end(), int64_t{0}) != problem.keep) {
    throw ConfigError(of_layer(problem.layer) + "keep_of_parts must add up to keep");
  }
  if (!problem.by_rows()) return;
  const std::vector<int64_t> present = row_counts(problem.present);
  if (parts.size() != present.size() ||
      !std::ranges::equal(parts, present, [](int64_t a, int64_t b) { return a >= 0 && a <= b; })) {
    throw ConfigError(of_layer(problem.layer) +
                      "keep_of_parts needs one count for each row, from 0 to the row's positions");
  }
}

MaskSet by_magnitude(const OneShotProblem& problem) {
  return keep_largest(problem, problem.weight.storage(), problem.keep,
                      shares_of_rows(problem, problem.keep));
}

MaskSet by_wanda(const OneShotProblem& problem) {
  std::vector<float> norms(problem.squares.size());
  const double rows = static_cast<double>(problem.gram.rows());
  for (size_t i = 0; i < norms.size(); ++i) {
    norms[i] = std::sqrt(static_cast<float>(problem.squares[i] / rows));
  }
  const std::span<const float> weight = problem.weight.storage();
  std::vector<float> scores(weight.size());
  for (size_t i = 0; i < scores.size(); ++i) {
    scores[i] = std::abs(weight[i]) * norms[i % norms.size()];
  }
  return keep_largest(problem, scores, problem.keep, shares_of_rows(problem, problem.keep));
}

PrunedWeight prune(const OneShotProblem& problem) {
  const auto with_mask = [&](MaskSet mask) {
    return PrunedWeight{.weight = masked(mask, problem.weight.storage()), .mask = std::move(mask)};
  };
  switch (problem.options.method) {
    case OneShotMethod::Magnitude:
      return with_mask(by_magnitude(problem));
    case OneShotMethod::Wanda:
      return with_mask(by_wanda(problem));
    case OneShotMethod::SparseGpt:
      return prune_by_sparse_gpt(problem);
    case OneShotMethod::Admm:
      return prune_by_admm(problem);
  }
  throw ConfigError(of_layer(problem.layer) + "unknown method of one-shot pruning");
}

}  // namespace

const char* to_string(OneShotMethod method) {
  switch (method) {
    case OneShotMethod::Magnitude:
      return "magnitude";
    case OneShotMethod::Wanda:
      return "wanda";
    case OneShotMethod::SparseGpt:
      return "sparsegpt";
    case OneShotMethod::Admm:
      return "admm";
  }
  return "";
}

const char* to_string(OneShotGranularity granularity) {
  return granularity == OneShotGranularity::Row ? "row" : "layer";
}

OneShotOptions OneShotOptions::defaults(OneShotMethod method) {
  OneShotOptions options{.method = method};
  if (method == OneShotMethod::Admm) options.damping = 0.1;
  if (method == OneShotMethod::Wanda) options.granularity = OneShotGranularity::Row;
  return options;
}

PrunedWeight prune_one_shot(const std::string& layer, const Tensor& weight, const InputGram& gram,
                            const MaskSelector& selector, int64_t keep, const MaskSet* present,
                            const OneShotOptions& options) {
  if (options.grid) {
    return prune_to_grid(layer, weight, gram, selector, keep, present, options);
  }
  require_layer(layer, weight, gram, selector.shape());
  if (present != nullptr) require_layer(layer, weight, gram, present->shape());
  const MaskSet candidates = present != nullptr ? *present : MaskSet::all(weight.shape());
  const OneShotProblem problem{
      .layer = layer,
      .weight = present != nullptr ? masked(candidates, weight.storage()) : weight,
      .rows = matrix_rows(weight.shape()),
      .columns = matrix_columns(weight.shape()),
      .gram = gram,
      .squares = gram.squares(),
      .selector = selector,
      .keep = keep,
      .present = candidates,
      .options = options};
  require_options(problem);
  require_parts(problem);
  PrunedWeight pruned = prune(problem);
  if (!options.least_squares) {
    pruned.relative_error = relative_output_error(problem.weight, pruned.weight, gram);
    return pruned;
  }
  if (options.method == OneShotMethod::Admm) pruned.mask = swap_for_least_squares(problem, pruned);
  pruned.weight = {};  // the mask alone is needed, and memory is short
  PrunedWeight fitted =
      fit_least_squares(layer, problem.weight, gram, pruned.mask, options.least_squares_damping);
  std::ranges::move(pruned.messages, std::inserter(fitted.messages, fitted.messages.begin()));
  return fitted;
}

}  // namespace lacuna
