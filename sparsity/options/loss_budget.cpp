#include "lacuna/sparsity/options/loss_budget.hpp"

#include <algorithm>
#include <cstdint>
#include <numeric>

namespace lacuna {
namespace {

// Indices of the points on the lower hull, from the cheapest one to the first of least loss.
std::vector<size_t> lower_hull(const std::vector<BudgetPoint>& points) {
  std::vector<size_t> order(points.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::ranges::stable_sort(order, [&](size_t a, size_t b) {
    if (points[a].cost != points[b].cost) return points[a].cost < points[b].cost;
    return points[a].loss < points[b].loss;
  });
  std::vector<size_t> hull;
  const auto is_above = [&](size_t a, size_t b, size_t c) {  // b, or on the line from a to c
    return (points[b].loss - points[a].loss) * (points[c].cost - points[a].cost) >=
           (points[c].loss - points[a].loss) * (points[b].cost - points[a].cost);
  };
  for (const size_t i : order) {
    if (!hull.empty() && points[i].loss > points[hull.back()].loss) continue;
    if (!hull.empty() && points[i].cost == points[hull.back()].cost) continue;
    while (hull.size() >= 2 && is_above(hull[hull.size() - 2], hull.back(), i)) hull.pop_back();
    hull.push_back(i);
  }
  return hull;
}

struct Segment {
  size_t weight = 0;
  size_t low = 0, high = 0;  // points
  double cost = 0.0;         // that of `high` in addition to that of `low`
  double slope = 0.0;        // loss saved per cost
};

// The segments of all hulls, the steepest first. Those of one hull stay in its order: it is convex.
std::vector<Segment> steepest_first(const std::vector<std::vector<BudgetPoint>>& weights) {
  std::vector<Segment> segments;
  for (size_t w = 0; w < weights.size(); ++w) {
    const std::vector<size_t> hull = lower_hull(weights[w]);
    double last = 0.0;
    for (size_t i = 1; i < hull.size(); ++i) {
      const BudgetPoint &low = weights[w][hull[i - 1]], &high = weights[w][hull[i]];
      const double cost = high.cost - low.cost;
      double slope = (low.loss - high.loss) / cost;
      if (i > 1) slope = std::min(slope, last);  // against rounding
      last = slope;
      segments.push_back({w, hull[i - 1], hull[i], cost, slope});
    }
  }
  std::ranges::stable_sort(segments,
                           [](const Segment& a, const Segment& b) { return a.slope > b.slope; });
  return segments;
}

size_t cheapest(const std::vector<BudgetPoint>& points) { return lower_hull(points).front(); }

// Spends what is left on single steps, also to points above the hull.
void spend_rest(const std::vector<std::vector<BudgetPoint>>& weights, double left,
                std::vector<size_t>& chosen) {
  for (;;) {
    size_t weight = weights.size(), point = 0;
    double best = 0.0;
    for (size_t w = 0; w < weights.size(); ++w) {
      const BudgetPoint now = weights[w][chosen[w]];
      for (size_t p = 0; p < weights[w].size(); ++p) {
        const double cost = weights[w][p].cost - now.cost, saved = now.loss - weights[w][p].loss;
        if (!(saved > 0.0) || !(cost > 0.0) || cost > left || saved / cost <= best) continue;
        best = saved / cost;
        weight = w;
        point = p;
      }
    }
    if (weight == weights.size()) return;
    left -= weights[weight][point].cost - weights[weight][chosen[weight]].cost;
    chosen[weight] = point;
  }
}

}  // namespace

double least_cost(const std::vector<std::vector<BudgetPoint>>& weights) {
  double sum = 0.0;
  for (const std::vector<BudgetPoint>& points : weights) sum += points[cheapest(points)].cost;
  return sum;
}

std::vector<BudgetPlace> places_within(const std::vector<std::vector<BudgetPoint>>& weights,
                                       double budget) {
  std::vector<BudgetPlace> places;
  for (const std::vector<BudgetPoint>& points : weights) {
    const size_t first = cheapest(points);
    places.push_back({first, first, 0.0});
  }
  double left = budget - least_cost(weights);
  for (const Segment& segment : steepest_first(weights)) {
    if (!(left > 0.0)) break;
    BudgetPlace& place = places[segment.weight];
    if (segment.cost <= left) {
      place = {segment.high, segment.high, 0.0};
    } else {
      place = {segment.low, segment.high, left / segment.cost};
    }
    left -= segment.cost;
  }
  return places;
}

std::vector<size_t> points_within(const std::vector<std::vector<BudgetPoint>>& weights,
                                  double budget) {
  std::vector<size_t> chosen;
  double left = budget;
  for (const BudgetPlace& place : places_within(weights, budget)) {
    chosen.push_back(place.low);
    left -= weights[chosen.size() - 1][place.low].cost;
  }
  spend_rest(weights, left, chosen);
  return chosen;
}

}  // namespace lacuna
