// Numbers by which processes know that they have the same data and the same weights.
#pragma once

#include <cstdint>
#include <span>

#include "lacuna/framework/data/dataset.h"

namespace lacuna {

/// FNV-1a of the values' bits, by whole numbers and not by their bytes: a large model's start waits
/// for it. `before`: of what comes before them.
uint64_t values_hash(std::span<const float> values, uint64_t before = 0xcbf29ce484222325u);

/// A hash of examples at even distances, the first and the last among them, as a model is given
/// them: inputs, labels and targets. Of few values all examples count. *Cost:* at most 2²⁰ input
/// values gathered, or 32 examples where these are more.
uint64_t examples_hash(const Dataset& data);

}  // namespace lacuna
