#include "lacuna/framework/program/output/model_table.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <span>
#include <utility>
#include <vector>

namespace lacuna {
namespace {

std::string text_of(const std::optional<Shape>& shape) { return shape ? shape->to_string() : "?"; }

int64_t whole(double flops) { return std::llround(flops); }

std::string text_of(const ModelTable::Counts& counts) {
  return fmt::format("{:>12} {:>12} {:>15} {:>14} {:>15} {:>14}", counts.numel, counts.final_nnz,
                     whole(counts.inference), whole(counts.dense.forward), whole(counts.training),
                     whole(counts.dense.training));
}

// Nonzeros of a parameter, as they are planned.
struct Nonzeros {
  int64_t at_the_end = 0;
  double mean = 0.0;
};

std::map<std::string, Nonzeros> nonzeros_of(const Experiment& experiment,
                                            const std::vector<PlannedParameter>& plan) {
  std::map<std::string, std::vector<const PlannedParameter*>> entries;
  for (const PlannedParameter& entry : plan) entries[entry.parameter].push_back(&entry);
  const auto examples = [&](int64_t step) {
    return static_cast<double>(experiment.examples_until(step));
  };
  std::map<std::string, Nonzeros> nonzeros;
  for (const auto& [parameter, of_it] : entries) {
    nonzeros[parameter] = {of_it.back()->final_nnz,
                           mean_nnz(of_it, experiment.total_steps(), examples)};
  }
  return nonzeros;
}

}  // namespace

ModelTable::Counts& ModelTable::Counts::operator+=(const Counts& other) {
  numel += other.numel;
  final_nnz += other.final_nnz;
  dense += other.dense;
  inference += other.inference;
  training += other.training;
  return *this;
}

ModelTable::ModelTable(const Experiment& experiment, const std::vector<PlannedParameter>& plan) {
  const std::map<std::string, Nonzeros> nonzeros = nonzeros_of(experiment, plan);
  const std::vector<ModuleRow>& modules = experiment.rows;
  const std::vector<Flops> dense = flops_of_modules(modules,
                                                    [](const Parameter&p) { return p.numel(); }),
                           in_the_end = flops_of_modules(
                               modules,
                               [&](const Parameter&p) { return nonzeros.at(p.name()).at_the_end; }),
                           on_average = flops_of_modules(modules, [&](const Parameter&p) {
                             return nonzeros.at(p.name()).mean;
                           });
  for (size_t i = 0; i < modules.size(); ++i) {
    const Module& module = *modules[i].module;
    Row row{.path = module.path(),
            .type = std::string(module.type()),
            .description = module.description(),
            .output = modules[i].output,
            .counts = {.dense = dense[i],
                       .inference = in_the_end[i].forward,
                       .training = on_average[i].training}};
    for (const auto& [name, parameter] : module.own_parameters()) {
      row.counts.numel += parameter->numel();
      row.counts.final_nnz += nonzeros.at(parameter->name()).at_the_end;
    }
    total_ += row.counts;
    if (!row.path.empty()) rows_.push_back(std::move(row));  // not the model itself
  }
}

void ModelTable::write_flops(const Counts& counts, Config& to) {
  to.set("inference_flops", whole(counts.inference));
  to.set("dense_inference_flops", whole(counts.dense.forward));
  to.set("training_flops", whole(counts.training));
  to.set("dense_training_flops", whole(counts.dense.training));
  to.set("flops", whole(counts.inference));  // the first two, by their earlier names
  to.set("dense_flops", whole(counts.dense.forward));
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
    write_flops(row.counts, entry);
    list.push_back(entry);
  }
  return list;
}

std::string ModelTable::text() const {
  size_t path = 5, type = 4, output = 6;  // widths
  for (const Row& row : rows_) {
    path = std::max(path, row.path.size());
    type = std::max(type, row.type.size());
    output = std::max(output, text_of(row.output).size());
  }
  std::string table =
      fmt::format("{:<{}}  {:<{}}  {:<{}}{:>12} {:>12} {:>15} {:>14} {:>15} {:>14}\n", "layer",
                  path, "type", type, "output", output, "parameters", "final nnz",
                  "inference FLOPs", "dense", "training FLOPs", "dense");
  for (const Row& row : rows_) {
    std::string line = fmt::format("{:<{}}  {:<{}}  {:<{}}", row.path, path, row.type, type,
                                   text_of(row.output), output);
    if (row.counts.numel > 0 || row.counts.dense.forward > 0) line += text_of(row.counts);
    if (!row.description.empty()) line += "  " + row.description;
    line.erase(line.find_last_not_of(' ') + 1);
    table += line + "\n";
  }
  table += fmt::format("{:<{}}{}\n", "all", path + type + output + 4, text_of(total_));
  table +=
      "FLOPs of one example: inference with the final nonzeros, training (forward and gradients) "
      "with\nthose of each step, the mean over the run; dense: with all weights\n";
  return table;
}

}  // namespace lacuna
