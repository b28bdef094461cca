// TiedWeight: the interface of a module that multiplies by another module's parameter.
#pragma once

#include "lacuna/framework/param/parameter.h"

namespace lacuna {

/// An additional base class of such modules. The parameter belongs to the other module: it is
/// named, initialized, saved, counted and given to the optimizer there, once; its gradients add up.
class TiedWeight {
 public:
  virtual ~TiedWeight() = default;
  virtual const ParameterPtr& tied_weight() const = 0;
};

}  // namespace lacuna
