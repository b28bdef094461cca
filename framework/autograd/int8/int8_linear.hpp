// The linear operation in int8: a product whose activation, sum and next bytes are computed with
// it.
#pragma once

#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "lacuna/framework/autograd/variable.h"
#include "lacuna/framework/kernels/int8/int8.hpp"
#include "lacuna/framework/kernels/int8/int8_rows.hpp"

namespace lacuna {

/// A linear layer whose weight is int8.
struct Int8Linear {
  std::string name;  ///< of the weight
  Int8Matrix weight;
  /// What one step of a weight is worth, for each output.
  std::vector<float> weight_scales;
  std::vector<float> bias;        ///< empty: none
  std::optional<Int8Grid> input;  ///< of the activations; absent: each example has its own

  /// The weight for few examples, made when first asked for. Any number of threads may ask.
  const Int8Sliced& sliced() const;

 private:
  mutable std::once_flag once_;
  mutable Int8Sliced sliced_;
};

/// Y = X Wᵀ + b, without a gradient. The product waits until its value is needed: a ReLU, a GELU
/// or a sum behind it, whatever modules they belong to, and the bytes of the int8 product that
/// comes next, are computed in the same pass. *Shapes:* x [..., in] → [..., out]. *Errors:*
/// ShapeError that names the weight; StateError where operations are recorded.
Variable int8_linear(const Variable& x, std::shared_ptr<const Int8Linear> layer);

}  // namespace lacuna
