#include "lacuna/sparsity/gmp.h"

#include <utility>

#include "lacuna/framework/core/error.h"
#include "lacuna/sparsity/selection.h"

namespace lacuna {

Gmp::Gmp(DynamicOptions given) : DynamicSparsityAlgorithm(given) {
  if (given.drop_fraction) {
    throw ConfigError("gmp: takes no drop_fraction; the sparsity schedule says what is dropped");
  }
  if (options().sparsity.is_constant()) {
    throw ConfigError(
        "gmp: a constant sparsity never changes the mask; use algorithm 'static', or "
        "give a sparsity schedule");
  }
}

BitMask Gmp::update_mask(const Parameter& parameter, const BitMask& mask, float) {
  const GroupIndex index = groups(parameter);
  return top_k(magnitudes(parameter.to_dense().storage()), target_nnz(parameter) / index.count(),
               mask, index);
}

}  // namespace lacuna
