// A number by which a run that goes on knows its text again.
#pragma once

#include <cstdint>
#include <optional>

#include "lacuna/framework/data/dataset.h"

namespace lacuna {

/// A hash of tokens and labels; nothing where inputs are no tokens. Of at most 2²² tokens all
/// count, in the windows of a longer text or the sentences of a larger file those of examples at
/// even distances. *Cost:* so many tokens gathered.
std::optional<int64_t> token_fingerprint(const Dataset& data);

}  // namespace lacuna
