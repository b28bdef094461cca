// Operations that fuse a batch normalization before or after them: see batch_norm.cpp.
#pragma once

#include <optional>

#include "lacuna/framework/autograd/variable.h"
#include "lacuna/framework/kernels/images/batch_norm.hpp"

namespace lacuna {

/// A node may implement it if its operation knows the moments of its output, which a following
/// normalization then uses.
class HasChannelStatistics {
 public:
  virtual ~HasChannelStatistics() = default;
  /// Empty if they are not known.
  virtual const ChannelStatistics& statistics() const = 0;
};

/// The sum, if one of them is a normalization that is not computed yet; it is not computed here.
std::optional<Variable> fused_add(const Variable& a, const Variable& b);
/// The ReLU, if x is a normalization (with a sum) that is not computed yet.
std::optional<Variable> fused_relu(const Variable& x);

}  // namespace lacuna
