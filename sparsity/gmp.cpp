#include "lacuna/sparsity/gmp.h"

#include <algorithm>
#include <utility>

#include "lacuna/framework/core/error.h"
#include "lacuna/sparsity/selection.h"

namespace lacuna {

Gmp::Gmp(DynamicOptions given) : DynamicPatternAlgorithm(given) {
  if (given.drop_fraction) {
    throw ConfigError("gmp: takes no drop_fraction; the sparsity schedule says what is dropped");
  }
  if (options().sparsity.is_constant()) {
    throw ConfigError(
        "gmp: a constant sparsity never changes the mask; use algorithm 'static', or "
        "give a sparsity schedule");
  }
}

Positions Gmp::update_positions(const Parameter& parameter, const Positions& present, float) {
  const GroupIndex index = groups(parameter);
  return top_k(present, scores(parameter), target_nnz(parameter) / index.count(), index);
}

std::vector<float> Gmp::scores(const Parameter& parameter) const {
  return magnitudes(parameter.compacted(parameter.values()).storage());
}

int64_t Gmp::nnz_after_update(int64_t nnz, int64_t target, int64_t, int64_t, int64_t) const {
  return std::min(nnz, target);
}

}  // namespace lacuna
