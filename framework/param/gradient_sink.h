// Where gradients go: parameters implement it, and so do sparsifiers that derive their weight.
#pragma once

#include <functional>
#include <memory>
#include <span>
#include <string>

#include "lacuna/framework/core/tensor.h"
#include "lacuna/framework/layouts/pattern.h"

namespace lacuna {

/// Receives the gradient of one array during backward. Several calls add up.
class GradientSink {
 public:
  virtual ~GradientSink() = default;
  /// Adds a gradient in the array's logical shape.
  virtual void accumulate(const Tensor& gradient) = 0;
  /// Adds dYᵀ X, the gradient of a linear layer's weight. *Shapes:* dy [..., out], x [..., in].
  /// How much of the product is computed is the receiver's business.
  virtual void accumulate_product(const Tensor& dy, const Tensor& x) = 0;

  /// Adds the gradient of a convolution's weight. *Shapes:* dy and x as in `shape`, in any order.
  virtual void accumulate_convolution(const ConvolutionShape& shape, const Tensor& dy,
                                      const Tensor& x);

  /// Writes a gradient in the array's logical shape, row-major, or adds it to what is there.
  using Computation = std::function<void(std::span<float> gradient, Accumulate accumulate)>;
  /// Adds such a gradient, computed where the receiver wants it.
  virtual void accumulate_computed(const Computation& compute) = 0;
};

/// What the linear op needs of a weight: a parameter supplies one, and so does whatever derives its
/// weight at every forward. Valid until the weight changes.
struct WeightReference {
  std::string name;                                  ///< for messages
  PatternPtr pattern;                                ///< of shape [out, in]
  Tensor values;                                     ///< aligned to the pattern
  std::shared_ptr<GradientSink> sink;                ///< null when no gradient is wanted
  uint64_t version = 0;                              ///< another one when the values have changed
  std::shared_ptr<DerivedValues> derived = nullptr;  ///< null: nothing is kept between products

  WeightView view() const {
    return {.pattern = *pattern,
            .values = values.storage(),
            .version = version,
            .derived = derived.get()};
  }
};

}  // namespace lacuna
