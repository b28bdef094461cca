#include "lacuna/sparsity/sparsified_weight.h"

#include "lacuna/framework/core/error.h"

namespace lacuna {
namespace {

DynamicOptions dynamic_options(const SparsifiedWeightOptions& o) {
  if (o.sparsifier == nullptr) throw ConfigError("sparsify needs a sparsifier");
  DynamicOptions options;
  options.param_filter = o.param_filter;
  options.layout = o.layout;
  options.structure = o.sparsifier->structure();
  return options;
}

}  // namespace

SparsifiedWeight::SparsifiedWeight(const SparsifiedWeightOptions& options)
    : SelectedPart("sparsify", dynamic_options(options), options.every),
      sparsifier_(options.sparsifier) {}

BitMask SparsifiedWeight::select(const Parameter& parameter) const {
  return sparsifier_->keep(master(parameter), parameter.name());
}

// How many positions a sparsifier will keep of weights to come is not known.
void SparsifiedWeight::foresee(std::vector<PlannedParameter>& planned, int64_t steps) const {
  std::vector<int64_t> nnz;
  for (const PlannedParameter& parameter : planned) nnz.push_back(parameter.initial_nnz);
  SelectedPart::foresee(planned, steps);
  for (size_t i = 0; i < planned.size(); ++i) planned[i].final_nnz = nnz[i];
}

}  // namespace lacuna
