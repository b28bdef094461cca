#include "lacuna/sparsity/straight_through.h"

#include <fmt/core.h>

#include <memory>
#include <utility>

#include "lacuna/framework/core/error.h"
#include "lacuna/sparsity/weights/full_groups.hpp"

namespace lacuna {
namespace {

DynamicOptions updating(const std::string& type, DynamicOptions options, int64_t every) {
  if (every < 1) {
    throw ConfigError(fmt::format("{}: every must be at least 1, found {}", type, every));
  }
  options.update = UpdateSchedule::every(every);
  return options;
}

}  // namespace

StraightThrough::StraightThrough(DynamicOptions given)
    : DynamicSparsityAlgorithm(std::move(given)),
      remains_(MasterWeight::Remains::Part),
      part_([](const SparseWeight& weight) {
        return weight.selector().prune_gradually(MaskSet::all(weight.shape()),
                                                 magnitudes(weight.master()->values().storage()),
                                                 weight.target_nnz());
      }),
      begins_with_part_(false) {
  if (options().drop_fraction) {
    throw ConfigError("ste: takes no drop_fraction; the sparsity schedule sets what is dropped");
  }
}

StraightThrough::StraightThrough(const std::string& type, DynamicOptions options, int64_t every,
                                 MasterWeight::Remains remains, Part part)
    : DynamicSparsityAlgorithm(updating(type, std::move(options), every),
                               every == 1 ? PatternLifetime::OneStep : PatternLifetime::ManySteps),
      remains_(remains),
      part_(std::move(part)),
      begins_with_part_(true) {}

FirstMasks StraightThrough::first_masks() const {
  return begins_pruned(options().sparsity) ? FirstMasks::Made : FirstMasks::Own;
}

void StraightThrough::adopt(Module& module, std::vector<ParameterPtr> parameters,
                            MaskSource source) {
  take_charge(std::move(parameters));
  // Each begins as the whole weight, before the first mask prunes it.
  for (SparseWeight& weight : weights()) weight.keep_master(remains_);
  begin(module, source, GradientRoute::TapOnly);
}

void StraightThrough::before_step(Optimizer&, StepScopes& scopes) {
  const bool chooses = updates_itself() && update_schedule().is_update(step() + 1);
  for (SparseWeight& weight : weights()) {
    weight.master()->take_part();
    Tensor gradient = take_dense_gradient(weight);
    add_to_gradient(weight, gradient);
    scopes.push_back(std::make_unique<MasterSwap>(
        weight.parameter(), *weight.master(), std::move(gradient),
        chooses ? MasterSwap::Then::ChooseMask : MasterSwap::Then::UseMask));
    weight.stop_watching();
  }
}

MaskSet StraightThrough::initial_mask(const SparseWeight& weight, MaskSource source) {
  if (begins_with_part_) return part_(weight);
  if (const auto mask =
          mask_with_full_groups(weight, source, options().init_method, options().seed))
    return *mask;
  return DynamicSparsityAlgorithm::initial_mask(weight, source);
}

MaskSet StraightThrough::update_mask(const SparseWeight& weight, const MaskSet&, float) {
  return part_(weight);
}

}  // namespace lacuna
