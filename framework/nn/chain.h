// Chain: modules that run one after the other, used by Sequential and Residual.
#pragma once

#include <span>
#include <vector>

#include "lacuna/framework/autograd/variable.h"
#include "lacuna/framework/nn/module.h"

namespace lacuna {

/// A sequence of modules, each of which receives the output of the one before; an empty chain
/// returns its input. *Ownership:* the creator of the chain owns the modules, which must outlive
/// it.
class Chain {
 public:
  void push_back(Module& module) { modules_.push_back(&module); }
  bool empty() const { return modules_.empty(); }
  std::span<Module* const> modules() const { return modules_; }

  Variable operator()(const Variable& input) const;
  /// The same for the shards of a batch: each module runs all of them before the next one does.
  std::vector<Variable> forward_shards(std::span<const Variable> inputs) const;
  /// *Errors:* those of the modules.
  Shape output_shape(const Shape& input) const;
  /// The input of each module, in order.
  std::vector<Shape> inputs(const Shape& input) const;

 private:
  std::vector<Module*> modules_;
};

}  // namespace lacuna
