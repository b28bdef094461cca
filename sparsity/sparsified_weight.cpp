#include "lacuna/sparsity/sparsified_weight.h"

#include "lacuna/framework/core/error.h"

namespace lacuna {
namespace {

DynamicOptions dynamic_options(const SparsifiedWeightOptions& o) {
  if (o.sparsifier == nullptr) throw ConfigError("sparsify needs a sparsifier");
  if (o.every < 1) {
    throw ConfigError("sparsify: every must be at least 1, found " + std::to_string(o.every));
  }
  DynamicOptions options;
  options.param_filter = o.param_filter;
  options.layout = o.layout;
  options.update = UpdateSchedule::every(o.every);
  return options;
}

}  // namespace

SparsifiedWeight::SparsifiedWeight(const SparsifiedWeightOptions& options)
    : StraightThrough(dynamic_options(options)), sparsifier_(options.sparsifier) {}

Positions SparsifiedWeight::select(const Parameter& parameter) const {
  return Positions::of(parameter.shape(), sparsifier_->keep(master(parameter), parameter.name()));
}

Positions SparsifiedWeight::initial_positions(const Parameter& parameter) {
  return select(parameter);
}

Positions SparsifiedWeight::first_positions(const Parameter& parameter, FirstMasks first) {
  return first == FirstMasks::Keep ? StraightThrough::first_positions(parameter, first)
                                   : select(parameter);
}

Positions SparsifiedWeight::update_positions(const Parameter& parameter, const Positions&, float) {
  return select(parameter);
}

// How many positions a sparsifier will keep of weights to come is not known.
void SparsifiedWeight::foresee(std::vector<PlannedParameter>& planned, int64_t steps) const {
  std::vector<int64_t> nnz;
  for (const PlannedParameter& parameter : planned) nnz.push_back(parameter.initial_nnz);
  StraightThrough::foresee(planned, steps);
  for (size_t i = 0; i < planned.size(); ++i) planned[i].final_nnz = nnz[i];
}

}  // namespace lacuna
