#include "lacuna/sparsity/options/distribution.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <string>

#include "lacuna/framework/config/names.h"
#include "lacuna/framework/core/error.h"
#include "lacuna/framework/core/plural.hpp"
#include "lacuna/sparsity/options/counting.hpp"

namespace lacuna {
namespace {

// Unscaled density of one tensor.
double raw_density(const Distribution& d, const Shape& shape) {
  if (shape.numel() == 0) return 0.0;
  if (d.kind == Distribution::Kind::Er) {  // of a matrix; a convolution counts its channels
    const auto out = static_cast<double>(shape[0]);
    const auto in = static_cast<double>(shape.rank() > 1 ? shape[1] : 1);
    return (out + in) / (out * in);
  }
  double sum = 0.0, product = 1.0;
  for (const int64_t size : shape.sizes()) {
    sum += static_cast<double>(size);
    product *= static_cast<double>(size);
  }
  return std::pow(sum / product, d.power);
}

std::vector<double> scaled_densities(const Distribution& d, double density,
                                     const std::vector<Shape>& shapes) {
  std::vector<double> result(shapes.size(), 1.0);
  std::vector<bool> dense(shapes.size(), false);
  double budget = 0.0;
  for (const Shape& shape : shapes) budget += density * static_cast<double>(shape.numel());
  for (bool again = true; again;) {
    double left = budget, weight = 0.0;
    for (size_t i = 0; i < shapes.size(); ++i) {
      const auto numel = static_cast<double>(shapes[i].numel());
      dense[i] ? left -= numel : weight += raw_density(d, shapes[i]) * numel;
    }
    const double scale = weight > 0.0 ? left / weight : 0.0;
    again = false;
    for (size_t i = 0; i < shapes.size(); ++i) {
      if (dense[i]) continue;
      result[i] = std::max(0.0, scale * raw_density(d, shapes[i]));
      if (result[i] > 1.0) {
        result[i] = 1.0;
        dense[i] = again = true;
      }
    }
  }
  return result;
}

// density_l = 1 / (F·numel_l + 1) with F ≥ 0 by bisection: the mean density falls as F rises.
std::vector<double> igq_densities(double density, const std::vector<Shape>& shapes) {
  std::vector<double> result(shapes.size());
  double budget = 0.0;
  for (const Shape& shape : shapes) budget += density * static_cast<double>(shape.numel());
  const auto total_at = [&](double f) {
    double total = 0.0;
    for (size_t i = 0; i < shapes.size(); ++i) {
      const auto numel = static_cast<double>(shapes[i].numel());
      result[i] = 1.0 / (f * numel + 1.0);
      total += result[i] * numel;
    }
    return total;
  };
  double low = 0.0, high = 1.0;
  while (total_at(high) > budget && high < 1e300) high *= 2.0;
  for (int i = 0; i < 200; ++i) {
    const double middle = 0.5 * (low + high);
    (total_at(middle) > budget ? low : high) = middle;
  }
  total_at(high);
  return result;
}

}  // namespace

Distribution Distribution::from_config(const Config& config) {
  if (config.is_null()) return {};
  static const std::vector<std::string> names = {"uniform", "er", "erk", "igq"};
  const auto name = config.as<std::string>();
  const auto found = std::ranges::find(names, name);
  if (found == names.end()) {
    config.error("unknown distribution '" + name + "'; " + suggest_name(name, names));
  }
  return {static_cast<Kind>(found - names.begin())};
}

std::vector<double> layer_densities(const Distribution& distribution, double density,
                                    const std::vector<Shape>& shapes) {
  switch (distribution.kind) {
    case Distribution::Kind::Uniform:
      return std::vector<double>(shapes.size(), density);
    case Distribution::Kind::Igq:
      return igq_densities(density, shapes);
    default:
      return scaled_densities(distribution, density, shapes);
  }
}

std::vector<int64_t> round_to_budget(const std::vector<double>& shares,
                                     const std::vector<int64_t>& numels, int64_t budget) {
  std::vector<int64_t> counts(shares.size());
  std::vector<size_t> order(shares.size());
  std::iota(order.begin(), order.end(), size_t{0});
  for (size_t i = 0; i < shares.size(); ++i) {
    counts[i] = std::clamp<int64_t>(static_cast<int64_t>(shares[i]), 0, numels[i]);
  }
  const auto remainder = [&](size_t i) { return shares[i] - static_cast<double>(counts[i]); };
  std::ranges::stable_sort(order, [&](size_t a, size_t b) { return remainder(a) > remainder(b); });
  int64_t left = budget - std::accumulate(counts.begin(), counts.end(), int64_t{0});
  while (left != 0) {
    const int64_t before = left;
    for (size_t n = 0; n < order.size() && left != 0; ++n) {
      const size_t i = left > 0 ? order[n] : order[order.size() - 1 - n];
      if (left > 0 && counts[i] < numels[i]) {
        ++counts[i];
        --left;
      } else if (left < 0 && counts[i] > 0) {
        --counts[i];
        ++left;
      }
    }
    if (left == before) break;  // full (or empty) everywhere
  }
  return counts;
}

namespace {

int64_t numel_of_all(const std::vector<Shape>& shapes) {
  int64_t total = 0;
  for (const Shape& shape : shapes) total += shape.numel();
  return total;
}

// `sparsity` is for the message alone.
std::vector<int64_t> distribute_budget(const Distribution& distribution, double sparsity,
                                       int64_t budget, const std::vector<Shape>& shapes) {
  std::vector<int64_t> numels;
  for (const Shape& shape : shapes) numels.push_back(shape.numel());
  const int64_t total = numel_of_all(shapes);
  const auto nonempty = std::ranges::count_if(numels, [](int64_t numel) { return numel > 0; });
  if (budget < nonempty && sparsity < 1.0) {
    const double largest =
        1.0 - static_cast<double>(nonempty) / static_cast<double>(std::max<int64_t>(total, 1));
    throw ConfigError(
        fmt::format("a sparsity of {} leaves {} for {}; the largest that can be reached is {}",
                    Config(sparsity).text(), plural(budget, "nonzero"),
                    plural(nonempty, "parameter"), Config(largest).text()));
  }
  const double density =
      total == 0 ? 0.0 : static_cast<double>(budget) / static_cast<double>(total);
  std::vector<double> shares = layer_densities(distribution, density, shapes);
  for (size_t i = 0; i < shares.size(); ++i) shares[i] *= static_cast<double>(numels[i]);
  return round_to_budget(shares, numels, budget);
}

}  // namespace

std::vector<int64_t> distribute_nnz(const Distribution& distribution, float sparsity,
                                    const std::vector<Shape>& shapes) {
  if (distribution.kind == Distribution::Kind::Uniform) {
    std::vector<int64_t> counts;
    for (const Shape& shape : shapes) counts.push_back(target_nnz(sparsity, shape.numel()));
    return counts;
  }
  return distribute_budget(distribution, static_cast<double>(sparsity),
                           target_nnz(sparsity, numel_of_all(shapes)), shapes);
}

std::vector<int64_t> distribute_density(const Distribution& distribution, double density,
                                        const std::vector<Shape>& shapes) {
  const auto nonzeros = [density](int64_t numel) {
    return std::min(static_cast<int64_t>(density * static_cast<double>(numel)), numel);
  };
  if (distribution.kind == Distribution::Kind::Uniform) {
    std::vector<int64_t> counts;
    for (const Shape& shape : shapes) counts.push_back(nonzeros(shape.numel()));
    return counts;
  }
  return distribute_budget(distribution, 1.0 - density, nonzeros(numel_of_all(shapes)), shapes);
}
}  // namespace lacuna
