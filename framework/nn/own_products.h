// OwnProducts: the interface of a module that multiplies its inputs by each other.
#pragma once

#include <cstdint>

#include "lacuna/framework/core/shape.h"

namespace lacuna {

/// An additional base class of such modules, so that their cost is counted in addition to the
/// products with weights.
class OwnProducts {
 public:
  virtual ~OwnProducts() = default;
  /// Floating-point operations of a forward pass of one example of this shape: two for each
  /// multiply-add.
  virtual int64_t product_flops(const Shape& input) const = 0;
};

}  // namespace lacuna
