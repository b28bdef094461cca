// NamedInputs: the integer tensors of a batch, within reach of the modules that want them.
#pragma once

#include <string_view>

#include "lacuna/framework/core/named_tensors.h"

namespace lacuna {

/// While it lives, modules that run in this thread find these tensors by their names, and no
/// others: attention masks, token types. *Lifetime:* the tensors outlive it.
class NamedInputs {
 public:
  explicit NamedInputs(const NamedTensors& tensors);
  ~NamedInputs();
  NamedInputs(const NamedInputs&) = delete;
  NamedInputs& operator=(const NamedInputs&) = delete;

 private:
  const NamedTensors* saved_;
};

/// The tensor of that name, or null where there is none.
const IndexTensor* named_input(std::string_view name);

}  // namespace lacuna
