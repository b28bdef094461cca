// In which layout weights are stored.
#pragma once

#include <string>
#include <vector>

#include "lacuna/framework/param/parameter.h"

namespace lacuna::bench {

/// The layout of most of the weights: "csr", or "csr in 15 of 18" where others are stored in
/// another way. *Requires* at least one weight.
std::string stored_as(const std::vector<ParameterPtr>& weights);

}  // namespace lacuna::bench
