#include "lacuna/sparsity/one_shot/damped_factor.hpp"

#include <fmt/core.h>

#include <algorithm>

#include "lacuna/framework/core/error.h"

namespace lacuna {

double raised(double damping) { return std::max(10.0 * damping, kSmallestPivot); }

bool is_hopeless(double damping) { return !(damping <= 100.0); }

float shortest(double damping) { return static_cast<float>(damping); }

double factor_damped(const std::string& whose, double damping,
                     const std::function<bool(double)>& factor,
                     std::vector<std::string>& messages) {
  double enough = damping;
  while (!factor(enough)) {
    enough = raised(enough);
    if (is_hopeless(enough)) {
      throw DataError(fmt::format(
          "{}the Gram matrix of its inputs cannot be factored, with any damping from {} to {}; are "
          "the calibration inputs what they should be? Give other examples (`calibration`), "
          "normalize the data, or leave the layer out of param_filter",
          whose, shortest(damping), 100.0));
    }
  }
  if (enough != damping) {
    messages.push_back(
        fmt::format("{}the Gram matrix of its inputs is singular with damping {}: damping is "
                    "raised to {}; more calibration examples may help",
                    whose, shortest(damping), shortest(enough)));
  }
  return enough;
}

}  // namespace lacuna
