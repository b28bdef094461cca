// NamedTensors: the integer tensors of a batch, by their names.
#pragma once

#include <functional>
#include <map>
#include <string>

#include "lacuna/framework/core/tensor.h"

namespace lacuna {

/// Integers that belong to the examples of a batch, [examples, length] each: `input_ids` (tokens),
/// `attention_mask` (1 for a token, 0 for padding), `token_type_ids`.
using NamedTensors = std::map<std::string, IndexTensor, std::less<>>;

/// A label that losses and accuracies ignore.
inline constexpr int64_t kIgnoredLabel = -100;

}  // namespace lacuna
