#include "lacuna/sparsity/sparsified_weight.h"

#include "lacuna/framework/core/error.h"

namespace lacuna {
namespace {

DynamicOptions dynamic_options(const SparsifiedWeightOptions& o) {
  if (o.sparsifier == nullptr) throw ConfigError("sparsify needs a sparsifier");
  DynamicOptions options;
  options.param_filter = o.param_filter;
  options.layout = o.layout;
  options.pattern = o.sparsifier->pattern();
  return options;
}

}  // namespace

SparsifiedWeight::SparsifiedWeight(const SparsifiedWeightOptions& options)
    : StraightThrough("sparsify", dynamic_options(options), options.every,
                      MasterWeight::Remains::Part),
      sparsifier_(options.sparsifier) {}

MaskSet SparsifiedWeight::select(const SparseWeight& weight) const {
  return MaskSet(weight.shape(), sparsifier_->keep_weight(weight.master()->values(), weight.name()))
      .known_to_have(sparsifier_->pattern());
}

MaskSet SparsifiedWeight::initial_mask(const SparseWeight& weight, MaskSource) {
  return select(weight);
}

MaskSet SparsifiedWeight::update_mask(const SparseWeight& weight, const MaskSet&, float) {
  return select(weight);
}

void SparsifiedWeight::forecast(Forecast& forecast) const {
  // Elements that a sparsifier judges one by one may come back.
  forecast.is_exact = sparsifier_->scope() != Sparsifier::Scope::Streaming;
  std::vector<int64_t> nnz;
  for (const PlannedParameter& p : forecast.parameters) nnz.push_back(p.initial_nnz);
  StraightThrough::forecast(forecast);
  // How many positions it will keep of weights to come is not known.
  for (size_t i = 0; i < nnz.size(); ++i) {
    forecast.parameters[i].final_nnz = nnz[i];
    forecast.parameters[i].changes.clear();
  }
}

}  // namespace lacuna
