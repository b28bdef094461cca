#include "lacuna/framework/nn/evaluation_mode.hpp"

#include "lacuna/framework/nn/module.h"

namespace lacuna {

EvaluationMode::EvaluationMode(Module& module) {
  for (Module* one : module.modules()) were_training_.emplace_back(one, one->training());
  module.eval();
}

EvaluationMode::~EvaluationMode() {
  // A mode is set for a module and all below it, so the modules above come first.
  for (const auto& [module, was_training] : were_training_) {
    was_training ? module->train() : module->eval();
  }
}

}  // namespace lacuna
