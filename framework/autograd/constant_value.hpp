// ConstantValue: a deferred value without a graph.
#pragma once

#include "lacuna/framework/autograd/variable.h"

namespace lacuna {

/// A deferred value that no gradient is computed for, so that it may be read in place of the
/// computed one whether operations are recorded or not.
class ConstantValue : public DeferredValue {};

}  // namespace lacuna
