// Parameters that several layers use.
#pragma once

#include <set>

#include "lacuna/framework/nn/module.h"

namespace lacuna {

/// The parameters that more than one layer computes with: those that several modules register, and
/// weights to which another layer is tied (`tied_to`). To change one for one of its layers changes
/// the others. *Cost:* O(parameters).
std::set<const Parameter*> shared_parameters(const Module& model);

}  // namespace lacuna
