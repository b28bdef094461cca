// Token ids as a variable, so that integers can be passed to modules.
#pragma once

#include <utility>

#include "lacuna/framework/autograd/variable.h"

namespace lacuna {

/// Ids in place of a value. An embedding reads the integers directly; any other operation gets them
/// as floats, which are exact up to 2²⁴.
class TokenIds final : public DeferredValue {
 public:
  explicit TokenIds(IndexTensor values) : ids(std::move(values)) {}

  /// The ids as floats, a constant.
  Variable compute() override;
  bool is_constant() const override { return true; }

  IndexTensor ids;
};

/// A constant of the ids' shape, whose value is computed only if it is needed as floats.
Variable token_ids(IndexTensor ids);

/// The ids of `variable`; null if it is of another kind, or if its value as floats has been
/// computed. *Lifetime:* the variable's, until then.
const IndexTensor* ids_of(const Variable& variable);

}  // namespace lacuna
