#include "lacuna/sparsity/one_shot/prune_to_grid.hpp"

#include <algorithm>
#include <iterator>
#include <utility>
#include <vector>

#include "lacuna/sparsity/one_shot/grid_descent.hpp"
#include "lacuna/sparsity/one_shot/one_shot_problem.hpp"
#include "lacuna/sparsity/one_shot/weight_grid.hpp"

namespace lacuna {
namespace {

void round_all(const MaskSet& mask, const std::vector<float>& scales, Tensor& weight) {
  float* values = weight.mutable_data();
  const int64_t columns = matrix_columns(weight.shape());
  mask.positions().for_each(
      [&](int64_t i) { values[i] = on_grid(values[i], scales[static_cast<size_t>(i / columns)]); });
}

// Of inputs that were always zero the examples say nothing.
void round_dead_inputs(const InputGram& gram, const PrunedWeight& floats, PrunedWeight& swept) {
  const std::vector<double> squares = gram.squares();
  const int64_t columns = matrix_columns(floats.weight.shape());
  float* into = swept.weight.mutable_data();
  swept.mask.positions().for_each([&](int64_t i) {
    if (squares[static_cast<size_t>(i % columns)] != 0.0) return;
    into[i] = on_grid(floats.weight.data()[i], swept.grid_scales[static_cast<size_t>(i / columns)]);
  });
}

// What a sweep has left, where the damped error's descent lowers that of the examples, too.
void descend(const Tensor& weight, const InputGram& gram, PrunedWeight& swept) {
  Tensor lower = swept.weight.clone();
  descend_on_grid(weight, gram, swept.mask, swept.grid_scales, lower);
  const double error = relative_output_error(weight, lower, gram);
  if (!(error < swept.relative_error)) return;
  swept.weight = std::move(lower);
  swept.relative_error = error;
}

}  // namespace

PrunedWeight prune_to_grid(const std::string& layer, const Tensor& weight, const InputGram& gram,
                           const MaskSelector& selector, int64_t keep, const MaskSet* present,
                           const OneShotOptions& options) {
  OneShotOptions method = options;
  method.grid.reset();
  if (options.method == OneShotMethod::Admm) method.grid_in_rounds = options.grid;
  PrunedWeight floats = prune_one_shot(layer, weight, gram, selector, keep, present, method);
  const std::vector<float> scales = grid_scales(floats.weight, *options.grid);
  PrunedWeight swept;
  if (options.rounds_to_nearest) {
    swept = {.weight = floats.weight.clone(), .mask = floats.mask};
    round_all(swept.mask, scales, swept.weight);
  } else {
    OneShotOptions sweep = OneShotOptions::defaults(OneShotMethod::SparseGpt);
    sweep.grid_scales = scales;
    const MaskSelector any(ScoreGroups(), PatternShape(), weight.shape());
    swept =
        prune_one_shot(layer, floats.weight, gram, any, floats.mask.count(), &floats.mask, sweep);
  }
  swept.grid_scales = scales;
  if (!options.rounds_to_nearest) round_dead_inputs(gram, floats, swept);
  const Tensor before = present != nullptr ? masked(*present, weight.storage()) : weight;
  swept.relative_error = relative_output_error(before, swept.weight, gram);
  const bool is_sweep = options.method == OneShotMethod::SparseGpt && !options.least_squares;
  if (is_sweep && !options.rounds_to_nearest) {
    method.grid_scales = scales;
    PrunedWeight joint = prune_one_shot(layer, weight, gram, selector, keep, present, method);
    joint.grid_scales = scales;
    round_dead_inputs(gram, floats, joint);
    joint.relative_error = relative_output_error(before, joint.weight, gram);
    if (joint.relative_error <= swept.relative_error) swept = std::move(joint);
  }
  if (!options.rounds_to_nearest) descend(before, gram, swept);
  std::ranges::move(floats.messages, std::inserter(swept.messages, swept.messages.begin()));
  std::ranges::sort(swept.messages);
  swept.messages.erase(std::unique(swept.messages.begin(), swept.messages.end()),
                       swept.messages.end());
  return swept;
}

}  // namespace lacuna
