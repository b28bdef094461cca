// NamedInputs: the integers of a batch beside its tokens, where modules find them.
#pragma once

#include <string_view>

#include "lacuna/framework/core/named_tensors.h"

namespace lacuna {

/// While it lives, modules that run in this thread find these tensors by name: the mask of a batch,
/// the types of its tokens. The innermost scope counts alone; its end restores the one around it.
class NamedInputs {
 public:
  /// *Lifetime:* `tensors` outlives the scope.
  explicit NamedInputs(const NamedTensors& tensors);
  ~NamedInputs();
  NamedInputs(const NamedInputs&) = delete;
  NamedInputs& operator=(const NamedInputs&) = delete;

 private:
  const NamedTensors* saved_;
};

/// The tensor of that name in the innermost scope of this thread; null where there is none.
/// *Lifetime:* the scope's.
const IndexTensor* named_input(std::string_view name);

}  // namespace lacuna
