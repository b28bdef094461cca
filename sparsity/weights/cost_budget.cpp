#include "lacuna/sparsity/weights/cost_budget.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <string>

#include "lacuna/framework/core/error.h"
#include "lacuna/framework/layouts/cost/cost_model.hpp"
#include "lacuna/sparsity/options/loss_budget.hpp"

namespace lacuna {
namespace {

// As `export --sparse` writes a weight.
double bytes_of(const Parameter& parameter, int64_t nnz) {
  const auto numel = static_cast<double>(parameter.numel());
  const double words = std::ceil(numel / 32.0);
  return std::min(4.0 * numel, 4.0 * (static_cast<double>(nnz) + words));
}

double milliseconds_of(const Parameter& parameter, int64_t nnz, const LayoutPolicy& layouts) {
  const bool is_convolution = parameter.use == WeightUse::Convolution && parameter.convolution;
  if (parameter.use != WeightUse::Linear && !is_convolution) return 0.0;  // always the same
  const LayoutCosts costs =
      is_convolution ? compare_layouts(layouts.limits().convolution_of(parameter), nnz).costs
                     : compare_layouts(parameter.shape(), nnz, layouts.limits().rows_of(parameter),
                                       layouts.compressed(parameter), layouts.lifetime())
                           .costs;
  if (layouts.option().is_auto()) return std::min(costs.masked_ms, costs.compressed_ms);
  return &layouts.option().choose() == &layouts.compressed(parameter) ? costs.compressed_ms
                                                                      : costs.masked_ms;
}

std::vector<double> grid(const LossTable::Curve& curve) {
  std::vector<double> densities = {curve.densities.front()};
  for (int i = 1; i <= 100; ++i) {
    if (i / 100.0 > densities.front()) densities.push_back(i / 100.0);
  }
  return densities;
}

int64_t nonzeros(const Parameter& parameter, double density) {
  return std::max<int64_t>(std::llround(density * static_cast<double>(parameter.numel())), 1);
}

}  // namespace

const char* to_string(CostBudget::Kind kind) {
  return kind == CostBudget::Kind::Bytes ? "bytes" : "time";
}

CostBudget CostBudget::from_config(const Config& to) {
  const std::string form =
      "a map of one of bytes and time, as in {time: 0.5}; nonzeros are what `sparsity` limits";
  if (!to.is_map() || to.entries().size() != 1) to.fail(form);
  const auto [key, value] = to.entries().front();
  if (key != "bytes" && key != "time")
    value.error("there is no budget '" + key + "'; give " + form);
  CostBudget budget{.kind = key == "bytes" ? Kind::Bytes : Kind::Time};
  if (value.is_number()) budget.part = value.as<double>();
  if (!value.is_number() || !(budget.part > 0.0 && budget.part <= 1.0)) {
    value.fail("a number above 0 and up to 1");
  }
  return budget;
}

BudgetedDensities densities_within(const CostBudget& budget,
                                   const std::vector<const Parameter*>& parameters,
                                   const LossTable& losses, const LayoutPolicy& layouts) {
  if (budget.kind == CostBudget::Kind::Time && !layouts.limits().are_measured) {
    throw ConfigError(
        "to: a budget of time needs measurements, which runs in shards do not make; give bytes, or "
        "`sparsity`");
  }
  std::vector<std::vector<double>> densities;
  std::vector<std::vector<BudgetPoint>> points(parameters.size());
  BudgetedDensities result;
  for (size_t i = 0; i < parameters.size(); ++i) {
    const Parameter& parameter = *parameters[i];
    const LossTable::Curve curve = losses.curve(i);
    densities.push_back(grid(curve));
    for (const double density : densities.back()) {
      const int64_t nnz = nonzeros(parameter, density);
      const double cost = budget.kind == CostBudget::Kind::Bytes
                              ? bytes_of(parameter, nnz)
                              : milliseconds_of(parameter, nnz, layouts);
      points[i].push_back({cost, curve.increase_at(density)});
    }
    result.dense_cost += points[i].back().cost;
  }
  const double limit = budget.part * result.dense_cost;
  if (const double least = least_cost(points); least > limit) {
    throw ConfigError(fmt::format(
        "to: {{{}: {:g}}} cannot be met: at the sparsest levels the weights cost {:.3g} of dense "
        "ones; give more, or higher `levels`",
        to_string(budget.kind), budget.part, least / result.dense_cost));
  }
  const std::vector<size_t> chosen = points_within(points, limit);
  for (size_t i = 0; i < chosen.size(); ++i) {
    result.densities.push_back(densities[i][chosen[i]]);
    result.cost += points[i][chosen[i]].cost;
  }
  return result;
}

}  // namespace lacuna
