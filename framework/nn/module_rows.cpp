#include "lacuna/framework/nn/module_rows.h"

#include <algorithm>
#include <map>

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
    row.uses_per_weight = static_cast<double>(module.uses_per_weight(*input));
    for (const auto& [name, parameter] : module.own_parameters()) {
      if (name == "weight" && row.uses_per_weight > 0) row.weight = parameter;
    }
    const auto* tied = dynamic_cast<const TiedWeight*>(&module);
    if (tied != nullptr && row.uses_per_weight > 0) row.weight = tied->tied_weight();
    const auto* products = dynamic_cast<const OwnProducts*>(&module);
    if (products != nullptr) {
      row.product_flops = static_cast<double>(products->product_flops(*input));
    }
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

std::vector<ModuleRow> module_rows(const Module& model, const Shape& example,
                                   std::span<const int32_t> lengths) {
  std::vector<ModuleRow> rows;
  add_rows(model, example, rows);
  if (lengths.empty()) return rows;
  for (ModuleRow& row : rows) row.uses_per_weight = row.product_flops = 0.0;
  std::map<int32_t, int64_t> examples;
  for (const int32_t length : lengths) ++examples[length];
  for (const auto& [length, count] : examples) {
    std::vector<int64_t> sizes(example.sizes().begin(), example.sizes().end());
    sizes.front() = length;
    std::vector<ModuleRow> own;
    add_rows(model, Shape(sizes), own);
    const auto times = static_cast<double>(count);
    for (size_t i = 0; i < rows.size(); ++i) {
      rows[i].uses_per_weight += times * own[i].uses_per_weight;
      rows[i].product_flops += times * own[i].product_flops;
    }
  }
  for (ModuleRow& row : rows) {
    row.uses_per_weight /= static_cast<double>(lengths.size());
    row.product_flops /= static_cast<double>(lengths.size());
  }
  return rows;
}

Flops& Flops::operator+=(const Flops& other) {
  forward += other.forward;
  training += other.training;
  return *this;
}

std::vector<Flops> flops_of_modules(std::span<const ModuleRow> rows,
                                    const CountedElements& elements) {
  std::vector<Flops> all;
  all.reserve(rows.size());
  bool is_below_trained = false;  // whether something that comes before is trained
  for (const ModuleRow& row : rows) {
    int products = is_below_trained ? 2 : 1;
    double once = row.product_flops;
    if (row.weight == nullptr) {
      if (is_below_trained) ++products;  // of both factors
    } else {
      once += 2.0 * row.uses_per_weight * elements(*row.weight);
      if (row.weight->trainable) ++products;
    }
    all.push_back({.forward = once, .training = once * products});
    if (is_trained(row)) is_below_trained = true;
  }
  return all;
}

Flops count_flops(std::span<const ModuleRow> rows, const CountedElements& elements) {
  Flops total;
  for (const Flops& flops : flops_of_modules(rows, elements)) total += flops;
  return total;
}

std::map<std::string, double> uses_of_weights(std::span<const ModuleRow> rows) {
  std::map<std::string, double> uses;
  for (const ModuleRow& row : rows) {
    if (row.weight != nullptr) uses[row.weight->name()] += row.uses_per_weight;
  }
  return uses;
}

}  // namespace lacuna
