#include "lacuna/layers/add.hpp"

#include <fmt/core.h>

#include "lacuna/framework/autograd/ops/arithmetic.h"
#include "lacuna/framework/core/error.h"

namespace lacuna {

Variable Add::forward_all(std::span<const Variable> inputs) {
  if (inputs.empty()) throw ShapeError(fmt::format("layer '{}' (add) needs an input", path()));
  Variable sum = inputs.front();
  for (const Variable& input : inputs.subspan(1)) {
    if (input.shape() != sum.shape()) {
      throw ShapeError(fmt::format("layer '{}' (add): its inputs have shapes {} and {}", path(),
                                   sum.shape().to_string(), input.shape().to_string()));
    }
    sum = lacuna::add(sum, input);
  }
  return sum;
}

}  // namespace lacuna
