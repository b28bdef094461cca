#include "lacuna/framework/program/output/parametrization_table.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <string>

#include "lacuna/framework/train/parts/parametrization.hpp"

namespace lacuna {

ParametrizationTable::ParametrizationTable(const Experiment& experiment) {
  if (experiment.parametrization == nullptr) return;
  for (const Parametrization::Row& row : experiment.parametrization->rows(*experiment.optimizer)) {
    rows_.push_back(Config::map({{"parameter", row.sized->parameter->name()},
                                 {"role", std::string(role_in_words(row.sized->role))},
                                 {"inputs", row.sized->in},
                                 {"outputs", row.sized->out},
                                 {"density", row.density},
                                 {"first_values", row.first},
                                 {"lr", row.update.lr},
                                 {"eps", row.update.eps},
                                 {"weight_decay", row.update.weight_decay}}));
  }
}

std::string ParametrizationTable::text() const {
  if (empty()) return "";
  size_t width = 9;
  for (const Config& row : rows_.items()) {
    width = std::max(width, row.at("parameter").text().size());
  }
  std::string table = fmt::format("\n{:<{}}  {:<9} {:>8} {:>8} {:>8} {:>12} {:>8} {:>8} {:>8}\n",
                                  "parameter", width, "role", "inputs", "outputs", "density",
                                  "first values", "lr", "eps", "decay");
  for (const Config& row : rows_.items()) {
    const auto number = [&](const char* key) {
      return fmt::format("{:.4g}", row.required<double>(key));
    };
    table += fmt::format("{:<{}}  {:<9} {:>8} {:>8} {:>8} {:>12} {:>8} {:>8} {:>8}\n",
                         row.at("parameter").text(), width, row.at("role").text(), number("inputs"),
                         number("outputs"), number("density"), number("first_values"), number("lr"),
                         number("eps"), number("weight_decay"));
  }
  return table +
         "parametrization: inputs, outputs and density divided by those of the base; factors of "
         "first values, lr,\neps and weight decay\n";
}

}  // namespace lacuna
