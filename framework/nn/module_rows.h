// A model as a table: its modules with the shapes of one example, and what a pass over one costs.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <vector>

#include "lacuna/framework/nn/module.h"

namespace lacuna {

/// A module of a model, and what it is given and gives, without the batch dimension.
struct ModuleRow {
  const Module* module = nullptr;
  /// Unknown below a module that does not say what it gives its children.
  std::optional<Shape> input, output;
  /// The parameter that it multiplies by (another module's, where the weight is tied), and how
  /// often each element for one example; null and 0 where there is none.
  ParameterPtr weight;
  int64_t uses_per_weight = 0;
  /// Operations of a forward pass that multiply no weight: attention's (OwnProducts).
  int64_t product_flops = 0;
};

/// The model and all modules below, depth first, for examples of one shape. *Ownership:* the rows
/// are good as long as the model. *Errors:* ShapeError when it does not take such examples.
std::vector<ModuleRow> module_rows(const Module& model, const Shape& example);

/// Floating-point operations for one example: a multiplication and an addition for each use of an
/// element of a weight, and those of products without weights, as attention's. What costs little
/// beside (biases, activations, norms) is not counted.
struct Flops {
  int64_t forward = 0;
  /// Forward; the gradient of the weight, where it is trained; and that of the input, where
  /// something that comes before in the model's order is trained. Of a product without weights the
  /// gradients of both factors, there.
  int64_t training = 0;
  friend bool operator==(const Flops&, const Flops&) = default;
};

/// Of a forward pass through this module alone, if its weight, where it has one, had so many
/// elements.
int64_t forward_flops(const ModuleRow& row, int64_t elements);

/// Of a whole model; `elements` says how many of a weight are there: all, or its nonzeros.
Flops count_flops(std::span<const ModuleRow> rows,
                  const std::function<int64_t(const Parameter&)>& elements);

}  // namespace lacuna
