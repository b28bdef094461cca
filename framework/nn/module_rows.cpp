#include "lacuna/framework/nn/module_rows.h"

#include <algorithm>

#include "lacuna/framework/nn/own_products.h"
#include "lacuna/framework/nn/tied_weight.h"

namespace lacuna {
namespace {

void add_rows(const Module& module, const std::optional<Shape>& input,
              std::vector<ModuleRow>& rows) {
  ModuleRow row{.module = &module, .input = input, .output = {}, .weight = {}};
  std::optional<std::vector<Shape>> inputs;
  if (input) {
    row.output = module.output_shape(*input);
    inputs = module.child_inputs(*input);
    row.uses_per_weight = module.uses_per_weight(*input);
    for (const auto& [name, parameter] : module.own_parameters()) {
      if (name == "weight" && row.uses_per_weight > 0) row.weight = parameter;
    }
    const auto* tied = dynamic_cast<const TiedWeight*>(&module);
    if (tied != nullptr && row.uses_per_weight > 0) row.weight = tied->tied_weight();
    const auto* products = dynamic_cast<const OwnProducts*>(&module);
    if (products != nullptr) row.product_flops = products->product_flops(*input);
  }
  rows.push_back(row);
  size_t next = 0;
  for (const auto& [name, child] : module.children()) {
    const bool is_known = inputs && next < inputs->size();
    add_rows(*child, is_known ? std::optional((*inputs)[next]) : std::nullopt, rows);
    ++next;
  }
}

bool is_trained(const ModuleRow& row) {
  if (row.weight != nullptr && row.weight->trainable) return true;
  return std::ranges::any_of(row.module->own_parameters(),
                             [](const auto& entry) { return entry.second->trainable; });
}

}  // namespace

std::vector<ModuleRow> module_rows(const Module& model, const Shape& example) {
  std::vector<ModuleRow> rows;
  add_rows(model, example, rows);
  return rows;
}

int64_t forward_flops(const ModuleRow& row, int64_t elements) {
  return row.product_flops + 2 * row.uses_per_weight * elements;
}

Flops count_flops(std::span<const ModuleRow> rows,
                  const std::function<int64_t(const Parameter&)>& elements) {
  Flops total;
  bool is_below_trained = false;  // whether something that comes before is trained
  for (const ModuleRow& row : rows) {
    int gradients = is_below_trained ? 1 : 0;
    if (row.weight == nullptr) {
      gradients *= 2;
    } else if (row.weight->trainable) {
      ++gradients;
    }
    const int64_t once = forward_flops(row, row.weight == nullptr ? 0 : elements(*row.weight));
    total.forward += once;
    total.training += once * (1 + gradients);
    if (is_trained(row)) is_below_trained = true;
  }
  return total;
}

}  // namespace lacuna
