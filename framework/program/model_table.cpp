#include "lacuna/framework/program/model_table.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <cstdio>
#include <map>
#include <span>
#include <utility>

#include "lacuna/framework/nn/module_rows.h"

namespace lacuna {
namespace {

std::string text_of(const std::optional<Shape>& shape) { return shape ? shape->to_string() : "?"; }

std::string text_of(const ModelTable::Counts& counts) {
  return fmt::format("{:>12} {:>12} {:>14} {:>14}", counts.numel, counts.final_nnz,
                     counts.dense_flops, counts.flops);
}

}  // namespace

ModelTable::ModelTable(const Experiment& experiment, const std::vector<PlannedParameter>& plan) {
  std::map<std::string, int64_t> final_nnz;
  for (const PlannedParameter& entry : plan) final_nnz[entry.parameter] = entry.final_nnz;
  const Shape& example = experiment.data.train->example_shape();
  for (const ModuleRow& module : module_rows(*experiment.model, example)) {
    if (module.module->path().empty()) continue;  // the model itself
    Row row{.path = module.module->path(),
            .type = std::string(module.module->type()),
            .description = module.module->description(),
            .output = module.output,
            .counts = {}};
    for (const auto& [name, parameter] : module.module->own_parameters()) {
      row.counts.numel += parameter->numel();
      row.counts.final_nnz += final_nnz.at(parameter->name());
    }
    if (module.weight != nullptr) {
      row.counts.dense_flops = forward_flops(module, module.weight->numel());
      row.counts.flops = forward_flops(module, final_nnz.at(module.weight->name()));
    } else {
      row.counts.dense_flops = row.counts.flops = module.product_flops;
    }
    total_.numel += row.counts.numel;
    total_.final_nnz += row.counts.final_nnz;
    total_.dense_flops += row.counts.dense_flops;
    total_.flops += row.counts.flops;
    rows_.push_back(std::move(row));
  }
}

Config ModelTable::to_config() const {
  Config list = Config::list();
  for (const Row& row : rows_) {
    Config entry =
        Config::map({{"path", row.path}, {"type", row.type}, {"description", row.description}});
    if (row.output) {
      const std::span<const int64_t> sizes = row.output->sizes();
      entry.set("output", Config::from_value(std::vector<int64_t>(sizes.begin(), sizes.end())));
    }
    entry.set("parameters", row.counts.numel);
    entry.set("final_nnz", row.counts.final_nnz);
    entry.set("dense_flops", row.counts.dense_flops);
    entry.set("flops", row.counts.flops);
    list.push_back(entry);
  }
  return list;
}

void ModelTable::print() const {
  size_t path = 5, type = 4, output = 6;  // widths
  for (const Row& row : rows_) {
    path = std::max(path, row.path.size());
    type = std::max(type, row.type.size());
    output = std::max(output, text_of(row.output).size());
  }
  std::string table =
      fmt::format("{:<{}}  {:<{}}  {:<{}}{:>12} {:>12} {:>14} {:>14}\n", "layer", path, "type",
                  type, "output", output, "parameters", "final nnz", "dense FLOPs", "FLOPs");
  for (const Row& row : rows_) {
    std::string line = fmt::format("{:<{}}  {:<{}}  {:<{}}", row.path, path, row.type, type,
                                   text_of(row.output), output);
    if (row.counts.numel > 0 || row.counts.dense_flops > 0) line += text_of(row.counts);
    if (!row.description.empty()) line += "  " + row.description;
    line.erase(line.find_last_not_of(' ') + 1);
    table += line + "\n";
  }
  table += fmt::format("{:<{}}{}\n", "all", path + type + output + 4, text_of(total_));
  std::fputs(table.c_str(), stdout);
}

}  // namespace lacuna
