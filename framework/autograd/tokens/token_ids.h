// Token ids as a variable: how integers reach a module.
#pragma once

#include <utility>

#include "lacuna/framework/autograd/variable.h"

namespace lacuna {

/// Ids that stand for a value. An embedding takes the integers as they are; any other operation
/// gets them as floats, which are exact up to 2²⁴.
class TokenIds final : public DeferredValue {
 public:
  explicit TokenIds(IndexTensor values) : ids(std::move(values)) {}

  /// The ids as floats, a constant.
  Variable compute() override;

  IndexTensor ids;
};

/// A constant of the ids' shape, whose value is computed when somebody asks for it as floats.
Variable token_ids(IndexTensor ids);

/// The ids that `variable` stands for; null where it is of another kind, or its value as floats has
/// been asked for. *Lifetime:* the variable's, until then.
const IndexTensor* ids_of(const Variable& variable);

}  // namespace lacuna
