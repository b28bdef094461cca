// Deferred sums, which a norm after them computes in its first pass.
#pragma once

#include <cstdint>
#include <utility>

#include "lacuna/framework/autograd/variable.h"

namespace lacuna {

/// a + b, of one shape.
class DeferredSum final : public DeferredValue {
 public:
  DeferredSum(Variable a, Variable b);

  const Tensor& left() const { return a_.value(); }
  const Tensor& right() const { return b_.value(); }
  /// Stores the sum, in any order, after another operation has computed it.
  void set_value(Tensor value) { value_ = std::move(value); }
  Variable compute() override;
  /// How many deferred sums are computed one within the other, with this one.
  int depth() const { return depth_; }

 private:
  Variable a_, b_;
  int64_t shard_;
  int depth_;
  Tensor value_;
};

/// The deferred sum of x, if x is one; else null.
DeferredSum* deferred_sum(const Variable& x);

}  // namespace lacuna
