// Token ids as a model's input.
#pragma once

#include <utility>

#include "lacuna/framework/autograd/variable.h"
#include "lacuna/framework/core/tensor.h"

namespace lacuna {

/// Integers that stand where a model takes its input. Operations on floats get them as floats
/// (exact below 2²⁴); those that look something up ask for `ids_of`.
class TokenIds final : public DeferredValue {
 public:
  explicit TokenIds(IndexTensor ids) : ids_(std::move(ids)) {}
  const IndexTensor& ids() const { return ids_; }
  Variable compute() override;

 private:
  IndexTensor ids_;
};

/// A constant of the ids' shape.
Variable token_ids(IndexTensor ids);

/// The ids that the variable was made from, or null where it is no `token_ids`.
const IndexTensor* ids_of(const Variable& variable);

}  // namespace lacuna
