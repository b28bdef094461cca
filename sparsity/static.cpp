#include "lacuna/sparsity/static.h"

#include <utility>

#include "lacuna/framework/core/error.h"

namespace lacuna {

namespace {

void require_constant(const SparsityTarget& target) {
  if (!target.is_constant()) {
    throw ConfigError(
        "static: the sparsity must be a constant; a schedule needs a dynamic "
        "algorithm such as gmp, set or rigl");
  }
  if (!target.is_below_one()) {
    throw ConfigError("static: sparsity must be in [0, 1), found " +
                      target.schedule().config().text());
  }
}

}  // namespace

Static::Static(SparsityOptions options) : SparsityAlgorithm(std::move(options)) {
  this->options().require_no_updates("static");
  require_constant(this->options().sparsity);
}

void Static::require_settable(const SparsityTarget& sparsity) const {
  require_constant(sparsity);
  if (!parameters().empty()) SparsityAlgorithm::require_settable(sparsity);
}

}  // namespace lacuna
