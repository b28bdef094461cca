// Layout: how a weight's values lie in memory and how a linear layer's three products run on them.
// The open descriptor: dense and masked are built through it, and a user's own is too.
#pragma once

#include <span>
#include <string_view>

#include "lacuna/framework/core/tensor.h"

namespace lacuna {

class Pattern;

/// Whether a product overwrites its target or adds to it.
enum class Accumulate { No, Yes };

/// One object per layout, stateless, alive for the whole program. Weights are [out, in]; inputs and
/// output gradients have any number of leading (batch) dimensions.
class Layout {
 public:
  virtual ~Layout() = default;

  virtual std::string_view name() const = 0;

  /// Length of the arrays (values, gradient, optimizer states) aligned to the pattern.
  virtual int64_t stored_size(const Pattern& pattern) const = 0;

  /// Y = X Wᵀ + bias. *Shapes:* x [..., in], bias [out] or undefined → [..., out].
  virtual Tensor forward(const Pattern& pattern, std::span<const float> values, const Tensor& x,
                         const Tensor& bias) const = 0;
  /// dX = dY W. *Shapes:* dy [..., out] → [..., in].
  virtual Tensor input_gradient(const Pattern& pattern, std::span<const float> values,
                                const Tensor& dy) const = 0;
  /// dW = dYᵀ X at the stored positions; positions outside the pattern that have storage get zero.
  virtual void weight_gradient(const Pattern& pattern, const Tensor& dy, const Tensor& x,
                               Accumulate accumulate, std::span<float> gradient) const = 0;

  /// The values in the logical shape, zero outside the pattern.
  virtual Tensor to_dense(const Pattern& pattern, std::span<const float> values) const = 0;
  /// The pattern's elements of an array in the logical shape, row-major; others are dropped.
  virtual void from_dense(const Pattern& pattern, std::span<const float> dense,
                          std::span<float> values) const = 0;
  /// Makes stored elements outside the pattern zero (layouts that store none do nothing).
  virtual void prune(const Pattern& pattern, std::span<float> values) const = 0;
};

/// Every position is stored and trained.
const Layout& dense_layout();
/// Every position is stored; those outside a bit mask are zero. The reference for what the
/// compressed layouts compute.
const Layout& masked_layout();

}  // namespace lacuna
