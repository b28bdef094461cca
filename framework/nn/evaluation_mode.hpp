// EvaluationMode: a scope in which a model is evaluated.
#pragma once

#include <utility>
#include <vector>

#include "lacuna/framework/autograd/variable.h"

namespace lacuna {

class Module;

/// While it exists, a module and all below it are in evaluation mode, and operations in this thread
/// record nothing. Its end restores the mode of each module.
class EvaluationMode {
 public:
  /// *Lifetime:* the module and those below outlive the scope.
  explicit EvaluationMode(Module& module);
  ~EvaluationMode();
  EvaluationMode(const EvaluationMode&) = delete;
  EvaluationMode& operator=(const EvaluationMode&) = delete;

 private:
  std::vector<std::pair<Module*, bool>> were_training_;
  NoGrad no_grad_;
};

}  // namespace lacuna
