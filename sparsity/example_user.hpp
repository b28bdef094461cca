// ExampleUser: a second base of algorithms that must know what their model computes on.
#pragma once

#include <span>

#include "lacuna/framework/core/shape.h"
#include "lacuna/framework/nn/module.h"
#include "lacuna/framework/nn/module_rows.h"

namespace lacuna {

class ExampleUser {
 public:
  virtual ~ExampleUser() = default;
  /// Before the algorithm is applied to the model: an example's shape, and the model as a table.
  /// *Errors:* ConfigError when the algorithm cannot work on such a model.
  virtual void use_model(const Module& model, const Shape& example,
                         std::span<const ModuleRow> rows) = 0;
};

}  // namespace lacuna
