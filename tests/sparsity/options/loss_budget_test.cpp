// The solver of budgets against every possible choice.
#include "lacuna/sparsity/options/loss_budget.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <vector>

#include "lacuna/framework/core/random.h"

namespace lacuna {
namespace {

using Points = std::vector<std::vector<BudgetPoint>>;

/// Weights with a few points each, at random, in no order. `convex`: on a convex curve.
Points random_points(uint64_t seed, bool convex) {
  const CounterRng rng(seed, "points");
  uint64_t next = 0;
  const auto number = [&](double low, double high) {
    return low + (high - low) * static_cast<double>(rng.uniform(next++));
  };
  Points weights(2 + rng.bits(90001) % 4);
  for (std::vector<BudgetPoint>& points : weights) {
    const auto count = 1 + rng.bits(90002 + next) % 5;
    double cost = number(1.0, 5.0), loss = number(5.0, 10.0), slope = number(1.0, 4.0);
    for (uint64_t i = 0; i < count; ++i) {
      points.push_back(convex ? BudgetPoint{cost, loss}
                              : BudgetPoint{number(1.0, 20.0), number(0.0, 10.0)});
      const double more = number(0.5, 4.0);
      cost += more;
      slope *= number(0.2, 0.9);
      loss -= slope * more;
    }
    std::ranges::reverse(points);
  }
  return weights;
}

double cost_of(const Points& weights, const std::vector<size_t>& chosen) {
  double sum = 0.0;
  for (size_t w = 0; w < weights.size(); ++w) sum += weights[w][chosen[w]].cost;
  return sum;
}
double loss_of(const Points& weights, const std::vector<size_t>& chosen) {
  double sum = 0.0;
  for (size_t w = 0; w < weights.size(); ++w) sum += weights[w][chosen[w]].loss;
  return sum;
}

/// The least loss of all choices of points within the budget; infinite if there are none.
double least_loss(const Points& weights, double budget) {
  double best = std::numeric_limits<double>::infinity();
  std::vector<size_t> chosen(weights.size(), 0);
  for (;;) {
    if (cost_of(weights, chosen) <= budget) best = std::min(best, loss_of(weights, chosen));
    size_t w = 0;
    while (w < weights.size() && ++chosen[w] == weights[w].size()) chosen[w++] = 0;
    if (w == weights.size()) return best;
  }
}

struct Placed {
  double cost = 0.0, loss = 0.0;
};
Placed at(const Points& weights, const std::vector<BudgetPlace>& places) {
  Placed sum;
  for (size_t w = 0; w < weights.size(); ++w) {
    const BudgetPoint &low = weights[w][places[w].low], &high = weights[w][places[w].high];
    sum.cost += low.cost + places[w].part * (high.cost - low.cost);
    sum.loss += low.loss + places[w].part * (high.loss - low.loss);
  }
  return sum;
}

double range_of_costs(const Points& weights) {
  double most = 0.0;
  for (const auto& points : weights) {
    most += std::ranges::max_element(points, {}, &BudgetPoint::cost)->cost;
  }
  return most - least_cost(weights);
}

// The largest fall of the loss between two points of one weight.
double largest_step(const Points& weights) {
  double most = 0.0;
  for (const auto& points : weights) {
    const auto [low, high] = std::ranges::minmax_element(points, {}, &BudgetPoint::loss);
    most = std::max(most, high->loss - low->loss);
  }
  return most;
}

// Between points it is never worse than the best choice of points, and spends no more.
TEST(LossBudget, PlacesAreAtLeastAsGoodAsEveryChoiceOfPoints) {
  for (uint64_t seed = 0; seed < 400; ++seed) {
    const Points weights = random_points(seed, seed % 2 == 0);
    for (const double part : {0.0, 0.15, 0.4, 0.7, 0.95, 1.2}) {
      const double budget = least_cost(weights) + part * range_of_costs(weights);
      const Placed placed = at(weights, places_within(weights, budget));
      EXPECT_LE(placed.cost, budget + 1e-9) << seed;
      EXPECT_LE(placed.loss, least_loss(weights, budget) + 1e-9) << seed << ' ' << part;
    }
  }
}

// On points alone it keeps to the budget, and is off by less than one step.
TEST(LossBudget, PointsAreNearlyAsGoodAsTheBestChoice) {
  int best = 0, all = 0;
  for (uint64_t seed = 0; seed < 400; ++seed) {
    const Points weights = random_points(seed, seed % 2 == 0);
    for (const double part : {0.0, 0.15, 0.4, 0.7, 0.95, 1.2}) {
      const double budget = least_cost(weights) + part * range_of_costs(weights) + 1e-9;
      const std::vector<size_t> chosen = points_within(weights, budget);
      ASSERT_LE(cost_of(weights, chosen), budget) << seed;
      const double least = least_loss(weights, budget), found = loss_of(weights, chosen);
      EXPECT_LE(found, least + largest_step(weights) + 1e-9) << seed;
      best += found <= least + 1e-9 ? 1 : 0;
      ++all;
    }
  }
  EXPECT_GT(best, all * 7 / 10);  // in most cases it is the best one
}

TEST(LossBudget, SpendsTheBudgetWholly) {
  const Points weights = {{{10, 0}, {5, 1}, {1, 4}}, {{20, 0}, {2, 9}}};
  const std::vector<BudgetPlace> places = places_within(weights, 15.0);
  EXPECT_DOUBLE_EQ(at(weights, places).cost, 15.0);
  // Slopes: 0.75, 0.5, 0.2. The first weight is raised to 5, the second takes the rest.
  EXPECT_EQ(places[0].low, 1u);
  EXPECT_EQ(places[0].part, 0.0);
  EXPECT_EQ(places[1].low, 1u);
  EXPECT_EQ(places[1].high, 0u);
  EXPECT_DOUBLE_EQ(places[1].part, 8.0 / 18.0);
}

TEST(LossBudget, PassesOverPointsThatCostMoreAndLoseMore) {
  // Storing it sparse at a middle density costs more than dense.
  const Points weights = {{{8, 0}, {10, 1}, {9, 2}, {3, 5}}};
  EXPECT_EQ(points_within(weights, 9.5), std::vector<size_t>{0});
  EXPECT_EQ(points_within(weights, 7.0), std::vector<size_t>{3});
}

TEST(LossBudget, GivesEarlierWeightsTheEqualParts) {
  const Points weights = {{{2, 0}, {1, 1}}, {{2, 0}, {1, 1}}};
  EXPECT_EQ(points_within(weights, 3.0), (std::vector<size_t>{0, 1}));
  // A budget that is below the least.
  EXPECT_EQ(points_within(weights, 0.5), (std::vector<size_t>{1, 1}));
}

}  // namespace
}  // namespace lacuna
