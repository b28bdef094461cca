#include "lacuna/layers/leaky_relu.h"

#include <fmt/core.h>

#include <cmath>

#include "lacuna/framework/autograd/ops/activation.h"
#include "lacuna/framework/core/error.h"

namespace lacuna {

LeakyReLU::LeakyReLU(const Options& options) : options_(options) {
  if (!(options.negative_slope >= 0.0f && std::isfinite(options.negative_slope))) {
    throw ConfigError(
        fmt::format("leaky_relu: negative_slope must be a finite number of at least 0, found {}",
                    options.negative_slope));
  }
}

Variable LeakyReLU::forward(const Variable& input) {
  return leaky_relu(input, options_.negative_slope);
}

}  // namespace lacuna
