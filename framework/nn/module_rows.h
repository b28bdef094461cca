// A model as a table: its modules with the shapes of one example, and the FLOPs of one example.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "lacuna/framework/nn/module.h"

namespace lacuna {

/// A module of a model, and the shapes of its input and output, without the batch dimension.
struct ModuleRow {
  const Module* module = nullptr;
  /// Unknown below a module that does not report the inputs of its children.
  std::optional<Shape> input, output;
  /// The parameter that it multiplies by (another module's if the weight is tied), and how often
  /// each element is used for one example; null and 0 if there is none.
  ParameterPtr weight;
  double uses_per_weight = 0.0;
  /// Operations of a forward pass without a weight: attention's (OwnProducts).
  double product_flops = 0.0;
};

/// The model and all modules below, depth first, for examples of one shape. If examples differ in
/// length, `lengths` has the length of each, and the shapes are those of the longest, `example`:
/// uses and products are then the means over examples of their own lengths, without padding.
/// *Lifetime:* the rows are valid as long as the model. *Errors:* ShapeError if it does not accept
/// such examples. *Cost:* a walk over the model for each length.
std::vector<ModuleRow> module_rows(const Module& model, const Shape& example,
                                   std::span<const int32_t> lengths = {});

/// Floating-point operations (FLOPs) for one example, or the mean over examples of several lengths:
/// two, a multiplication and an addition, for each use of an element of a weight, and those of
/// products without weights, such as attention's. Cheaper operations (biases, activations, norms)
/// are not counted. docs/reference/run-folder.md has the definition for users.
struct Flops {
  /// "Inference FLOPs": those of a forward pass.
  double forward = 0.0;
  /// "Training FLOPs": forward; the gradient of the weight, if it is trained; and the gradient of
  /// the input, if a module before it in the model's order is trained. For a product without
  /// weights, in that case the gradients of both factors.
  double training = 0.0;
  friend bool operator==(const Flops&, const Flops&) = default;
  Flops& operator+=(const Flops& other);
};

/// How many elements of a weight are counted: all, or its nonzeros.
using CountedElements = std::function<double(const Parameter&)>;

/// The FLOPs of each module, without those below it, in the order of the rows.
std::vector<Flops> flops_of_modules(std::span<const ModuleRow> rows,
                                    const CountedElements& elements);

/// The FLOPs of a whole model: the sum over its modules.
Flops count_flops(std::span<const ModuleRow> rows, const CountedElements& elements);

/// How often one example multiplies by each element of a parameter, in all modules together, by its
/// full name: the number of rows that it adds to the products. Parameters without known products
/// are omitted.
std::map<std::string, double> uses_of_weights(std::span<const ModuleRow> rows);

}  // namespace lacuna
