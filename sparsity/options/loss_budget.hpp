// Which sparsity each weight gets under a budget for all of them, by the losses that these cost.
// Pure functions.
#pragma once

#include <cstddef>
#include <vector>

namespace lacuna {

/// A way to store a weight: its cost, which the budget limits, and the loss that it adds.
struct BudgetPoint {
  double cost = 0.0;
  double loss = 0.0;
};

/// A place between two points of a weight: `part` of the way from `low` to `high`.
struct BudgetPlace {
  size_t low = 0, high = 0;
  double part = 0.0;
};

/// The places of least total loss whose costs add up to at most `budget`, if losses and costs lie
/// on the lower convex hull of each weight's points. Begins with the cheapest point of each and
/// spends the budget on the steepest parts of the hulls, so that all weights but one end on a
/// point. Of equal parts the earlier weight's come first. *Requires* finite numbers, and at least
/// one point for each weight. A budget below the cost of the cheapest points gives these. *Cost:*
/// O(points · log points).
std::vector<BudgetPlace> places_within(const std::vector<std::vector<BudgetPoint>>& weights,
                                       double budget);

/// The same on points alone: the last weight takes the cheaper one of its two, and what is left of
/// the budget is spent point by point, always for the largest fall of the loss per cost. The loss
/// exceeds the least one by less than that of one step of a hull. *Cost:* O(points²) at most.
std::vector<size_t> points_within(const std::vector<std::vector<BudgetPoint>>& weights,
                                  double budget);

/// The cost of the cheapest point of each weight, added up.
double least_cost(const std::vector<std::vector<BudgetPoint>>& weights);

}  // namespace lacuna
