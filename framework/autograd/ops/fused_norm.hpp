// Operations that join a batch normalization before or behind them: see batch_norm.cpp.
#pragma once

#include <optional>

#include "lacuna/framework/autograd/variable.h"
#include "lacuna/framework/kernels/images/batch_norm.hpp"

namespace lacuna {

/// A node may be one: of an operation that knows the moments of what it made, which a normalization
/// behind it takes.
class HasChannelStatistics {
 public:
  virtual ~HasChannelStatistics() = default;
  /// Empty where they are not known.
  virtual const ChannelStatistics& statistics() const = 0;
};

/// The sum, where one of them is a normalization that is not computed yet; it still is not then.
std::optional<Variable> fused_add(const Variable& a, const Variable& b);
/// The ReLU, where x is a normalization (with a sum) that is not computed yet.
std::optional<Variable> fused_relu(const Variable& x);

}  // namespace lacuna
