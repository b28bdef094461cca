// DenseFallbackLayout: a base class for layouts that lack some of the three products.
#pragma once

#include <functional>
#include <string>

#include "lacuna/framework/layouts/layout.h"

namespace lacuna {

/// The reaction to a missing product.
enum class FallbackPolicy {
  Dense,  ///< a dense copy of the weight is used, with one notice per layout and product
  Error,  ///< StateError
};

/// For the whole program; initially Dense.
void set_fallback_policy(FallbackPolicy policy);
/// The receiver of the notice, not null; by default it is printed to the standard error output.
void set_fallback_notice(std::function<void(const std::string&)> notice);

/// Computes every product with a dense copy of the weight: O(numel) time and memory each. A layout
/// derives from it and overrides the products that it has.
class DenseFallbackLayout : public Layout {
 public:
  /// *Errors:* StateError under FallbackPolicy::Error.
  Tensor forward(const WeightView& weight, const Tensor& x, const Tensor& bias) const override;
  Tensor input_gradient(const WeightView& weight, const Tensor& dy) const override;
  void weight_gradient(const Pattern& pattern, const Tensor& dy, const Tensor& x,
                       Accumulate accumulate, std::span<float> gradient) const override;

 private:
  void announce(const char* product) const;
};

}  // namespace lacuna
