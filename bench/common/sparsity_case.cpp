#include "common/sparsity_case.h"

#include "lacuna/framework/core/error.h"
#include "lacuna/sparsity/configure.h"

namespace lacuna::bench {

std::unique_ptr<SparsityAlgorithm> apply_sparsity(const SparsityCase& sparsity,
                                                  const std::vector<std::string>& parameters,
                                                  Module& model, Optimizer& optimizer) {
  if (sparsity.algorithm.empty()) return nullptr;
  Config entry = Config::map({{"algorithm", sparsity.algorithm},
                              {"layout", sparsity.layout},
                              {"param_filter", Config::from_value(parameters)}});
  if (sparsity.pattern.is_null()) {
    entry.set("sparsity", sparsity.sparsity);
  } else {
    entry.set("pattern", sparsity.pattern.clone());
  }
  if (sparsity.algorithm == "semi_sparse") {
    entry.set("every", sparsity.freq);
  } else if (sparsity.algorithm != "static") {
    entry.set("update", Config::map({{"freq", sparsity.freq}}));
  }
  auto algorithm = configure(entry, 0);
  model.apply(*algorithm);
  optimizer.apply(*algorithm);
  const std::string stored = stored_layouts(model, parameters);
  if (sparsity.layout != "auto" && stored != sparsity.layout) {
    throw StateError("layout '" + sparsity.layout + "' was asked for, '" + stored + "' is stored");
  }
  return algorithm;
}

std::string stored_layouts(const Module& model, const std::vector<std::string>& parameters) {
  std::string first, all;
  bool differ = false;
  for (const std::string& name : parameters) {
    const std::string layout(model.parameter(name)->pattern()->layout().name());
    if (first.empty()) first = layout;
    differ = differ || layout != first;
    all += (all.empty() ? "" : ", ") + layout;
  }
  return differ ? all : first;
}

}  // namespace lacuna::bench
