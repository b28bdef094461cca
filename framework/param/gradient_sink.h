// Receivers of gradients: parameters, and sparsifiers that derive their weight.
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
  /// Adds dYᵀ X, the gradient of a linear layer's weight. *Shapes:* dy [..., out], x [..., in]. The
  /// receiver decides how much of the product is computed.
  virtual void accumulate_product(const Tensor& dy, const Tensor& x) = 0;

  /// Adds the gradient of a convolution's weight. *Shapes:* dy and x as in `shape`, in any order.
  virtual void accumulate_convolution(const ConvolutionShape& shape, const Tensor& dy,
                                      const Tensor& x);

  /// Writes a gradient in the array's logical shape, row-major, or adds it to the array.
  using Computation = std::function<void(std::span<float> gradient, Accumulate accumulate)>;
  /// Adds such a gradient, computed where the receiver decides.
  virtual void accumulate_computed(const Computation& compute) = 0;
};

/// A weight as the linear op sees it: from a parameter, or from an object that derives its weight
/// at every forward. Valid until the weight changes.
struct WeightReference {
  std::string name;                                   ///< for messages
  PatternPtr pattern;                                 ///< of shape [out, in]
  Tensor values;                                      ///< aligned to the pattern
  std::shared_ptr<GradientSink> sink;                 ///< null: no gradient is needed
  uint64_t version = 0;                               ///< changes whenever the values change
  std::shared_ptr<const uint64_t> current = nullptr;  ///< the version by now; null: not known
  std::shared_ptr<DerivedValues> derived = nullptr;   ///< null: nothing is kept between products

  WeightView view() const {
    return {.pattern = *pattern,
            .values = values.storage(),
            .version = version,
            .derived = derived.get()};
  }

  /// For a backward pass that multiplies by the weight. *Errors:* StateError if the values have
  /// changed since the reference was made: the gradient would be wrong.
  void require_unchanged() const;
};

}  // namespace lacuna
