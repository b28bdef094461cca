#include "lacuna/framework/nn/shared_parameters.hpp"

namespace lacuna {

std::set<const Parameter*> shared_parameters(const Module& model) {
  std::set<const Parameter*> once, shared;
  for (const ParameterPtr& parameter : model.parameters()) {  // one of several modules, as often
    const bool is_new = once.insert(parameter.get()).second;
    if (!is_new || parameter->is_tied) shared.insert(parameter.get());
  }
  return shared;
}

}  // namespace lacuna
