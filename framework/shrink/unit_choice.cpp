#include "lacuna/framework/shrink/unit_choice.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <set>
#include <utility>

#include "lacuna/framework/config/names.h"
#include "lacuna/framework/core/error.h"
#include "lacuna/framework/shrink/cut_state.hpp"
#include "lacuna/framework/shrink/unit_rounding.hpp"

namespace lacuna {
namespace {

// The part of a module's products without weights that is left: they run head by head.
double kept_heads(const Module& module, const ModelUnits& units, const KeptUnits& kept) {
  for (const UnitGraph::Size& size : units.sizes) {
    if (size.path != module.path() || size.key != "heads") continue;
    return static_cast<double>(kept_indices(size.units, kept).size()) /
           static_cast<double>(size.units.size());
  }
  return 1.0;
}

// Of a forward pass, an equal share for each index of a weight's dimension.
std::vector<double> flops_of_units(const ModelUnits& units, std::span<const ModuleRow> rows) {
  std::map<const Parameter*, double> flops;
  for (const ModuleRow& row : rows) {
    if (row.weight == nullptr) continue;
    flops[row.weight.get()] +=
        2.0 * row.uses_per_weight * static_cast<double>(row.weight->pattern()->nnz());
  }
  std::vector<double> shares(static_cast<size_t>(units.count));
  for (const UnitGraph::Slice& slice : units.slices) {
    const auto found = flops.find(slice.parameter.get());
    if (found == flops.end()) continue;
    for (const int32_t unit : slice.units) {
      shares[static_cast<size_t>(unit)] += found->second / static_cast<double>(slice.units.size());
    }
  }
  return shares;
}

bool matches_any(const UnitGroup& group, const std::vector<std::string>& globs) {
  return globs.empty() || std::ranges::any_of(group.layers, [&](const std::string& layer) {
           return std::ranges::any_of(
               globs, [&](const std::string& glob) { return glob_match(glob, layer); });
         });
}

void require_layers(const ModelUnits& units, const std::vector<std::string>& globs) {
  std::vector<std::string> all;
  for (const UnitGroup& group : units.groups) {
    all.insert(all.end(), group.layers.begin(), group.layers.end());
  }
  for (const std::string& glob : globs) {
    bool is_found = false;
    for (const UnitGroup& group : units.groups) {
      for (const std::string& layer : group.layers) {
        if (!glob_match(glob, layer)) continue;
        is_found = true;
        if (layer != glob || group.why_fixed.empty()) continue;
        throw ConfigError(
            fmt::format("no unit of layer '{}' can be removed: {}", layer, group.why_fixed));
      }
    }
    if (is_found) continue;
    throw ConfigError(
        all.empty() ? fmt::format("'{}' matches no layer: the model has no layer with removable "
                                  "units",
                                  glob)
                    : fmt::format("'{}' matches no layer with removable units; {}", glob,
                                  suggest_name(glob, all)));
  }
}

// Units that may be removed, by score or by rank.
std::vector<int32_t> sorted_units(const ModelUnits& units, std::vector<double> scores,
                                  const ShrinkOptions& options) {
  std::vector<int32_t> order;
  for (const UnitGroup& group : units.groups) {
    if (!matches_any(group, options.layers)) continue;
    std::vector<int32_t> own;
    for (const int32_t unit : group.units) {
      if (units.why_fixed[static_cast<size_t>(unit)].empty()) own.push_back(unit);
    }
    std::ranges::stable_sort(own, {},
                             [&](int32_t unit) { return scores[static_cast<size_t>(unit)]; });
    if (options.shares == ShrinkShares::Uniform) {
      for (size_t i = 0; i < own.size(); ++i) {
        scores[static_cast<size_t>(own[i])] =
            static_cast<double>(i + 1) / static_cast<double>(own.size());
      }
    }
    order.insert(order.end(), own.begin(), own.end());
  }
  std::ranges::stable_sort(order, {},
                           [&](int32_t unit) { return scores[static_cast<size_t>(unit)]; });
  return order;
}

// What must be left along each dimension.
class LeastUnits {
 public:
  LeastUnits(const ModelUnits& units, double keep_at_least)
      : slices_of_(static_cast<size_t>(units.count)) {
    for (size_t s = 0; s < units.slices.size(); ++s) {
      const std::set<int32_t> own(units.slices[s].units.begin(), units.slices[s].units.end());
      const auto count = static_cast<int64_t>(own.size());
      const auto least =
          static_cast<int64_t>(std::ceil(keep_at_least * static_cast<double>(count) - 1e-9));
      may_go_.push_back(count - std::max<int64_t>(least, 1));
      for (const int32_t unit : own) slices_of_[static_cast<size_t>(unit)].push_back(s);
    }
  }

  // Units of one class. Nothing changes where too little would be left.
  bool remove(std::span<const int32_t> block) {
    const std::vector<size_t>& slices = slices_of_[static_cast<size_t>(block.front())];
    const auto size = static_cast<int64_t>(block.size());
    if (std::ranges::any_of(slices, [&](size_t s) { return may_go_[s] < size; })) return false;
    for (const size_t s : slices) may_go_[s] -= size;
    return true;
  }

 private:
  std::vector<int64_t> may_go_;
  std::vector<std::vector<size_t>> slices_of_;
};

UnitsCost cost_by(const Module& model, std::span<const ModuleRow> rows, const ModelUnits& units,
                  const KeptUnits& kept,
                  const std::function<int64_t(const Parameter& parameter)>& elements) {
  std::map<const Parameter*, double> counts;
  UnitsCost cost;
  for (const ParameterPtr& parameter : model.parameters()) {
    const auto count = static_cast<double>(elements(*parameter));
    counts[parameter.get()] = count;
    cost.parameters += count;
  }
  for (const ModuleRow& row : rows) {
    if (row.weight != nullptr) cost.flops += 2.0 * row.uses_per_weight * counts[row.weight.get()];
    if (row.product_flops > 0.0) {
      cost.flops += row.product_flops * kept_heads(*row.module, units, kept);
    }
  }
  return cost;
}

}  // namespace

UnitsCost cost_of(const Module& model, std::span<const ModuleRow> rows, const ModelUnits& units,
                  const KeptUnits& kept) {
  const ParameterCuts cuts(units, kept);
  return cost_by(model, rows, units, kept,
                 [&](const Parameter& parameter) { return cuts.nonzeros(parameter); });
}

UnitsCost dense_cost_of(const Module& model, std::span<const ModuleRow> rows,
                        const ModelUnits& units, const KeptUnits& kept) {
  const ParameterCuts cuts(units, kept);
  return cost_by(model, rows, units, kept,
                 [&](const Parameter& parameter) { return cuts.shape_of(parameter).numel(); });
}

std::vector<int32_t> removable_units(const ModelUnits& units, const ShrinkOptions& options) {
  require_layers(units, options.layers);
  return sorted_units(units, std::vector<double>(static_cast<size_t>(units.count)), options);
}

std::vector<std::vector<int32_t>> removal_blocks(const ModelUnits& units,
                                                 std::span<const ModuleRow> rows,
                                                 const std::vector<double>& scores,
                                                 const ShrinkOptions& options,
                                                 const std::vector<int64_t>& multiples) {
  require_layers(units, options.layers);
  std::vector<double> by_cost = scores;
  const bool is_loss =
      options.method == ShrinkMethod::Saliency || options.method == ShrinkMethod::Error;
  if (is_loss && options.shares == ShrinkShares::Global) {
    const std::vector<double> flops = flops_of_units(units, rows);
    for (size_t i = 0; i < by_cost.size(); ++i) {
      if (flops[i] > 0.0) by_cost[i] /= flops[i];
    }
  }
  LeastUnits least(units, options.keep_at_least);
  std::vector<std::vector<int32_t>> blocks;
  const std::vector<int32_t> order = sorted_units(units, by_cost, options);
  for (std::vector<int32_t>& block : blocks_of_order(units, order, multiples)) {
    if (least.remove(block)) blocks.push_back(std::move(block));
  }
  return blocks;
}

std::vector<int32_t> removal_order(const ModelUnits& units, std::span<const ModuleRow> rows,
                                   const std::vector<double>& scores,
                                   const ShrinkOptions& options) {
  const std::vector<int64_t> single(static_cast<size_t>(units.count), 1);
  std::vector<int32_t> order;
  for (const auto& block : removal_blocks(units, rows, scores, options, single)) {
    order.push_back(block.front());
  }
  if (!order.empty()) return order;
  if (!removable_units(units, options).empty()) {
    throw ConfigError(
        fmt::format("no unit of the model can be removed, because each layer keeps a fraction of "
                    "{:g} of its units, rounded up (keep_at_least), and at least one; give a "
                    "smaller number",
                    options.keep_at_least));
  }
  std::set<std::string> reasons;
  for (const UnitGroup& group : units.groups) {
    if (!group.why_fixed.empty()) reasons.insert(group.why_fixed);
  }
  if (reasons.empty()) {  // no layer gives units
    reasons.insert(units.why_fixed.begin(), units.why_fixed.end());
    reasons.erase("");
  }
  throw ConfigError(
      fmt::format("no unit of the model can be removed{}{}", reasons.empty() ? "" : ": ",
                  join_foreign(std::vector<std::string>(reasons.begin(), reasons.end()), "; ")));
}

KeptUnits without_first(const ModelUnits& units, std::span<const int32_t> order, size_t count) {
  KeptUnits kept(static_cast<size_t>(units.count), 1);
  for (const int32_t unit : order.first(count)) kept[static_cast<size_t>(unit)] = 0;
  return kept;
}

std::optional<size_t> count_within(size_t most, double target,
                                   const std::function<double(size_t count)>& cost) {
  if (cost(0) <= target) return 0;
  if (cost(most) > target) return std::nullopt;
  size_t above = 0, within = most;
  while (within - above > 1) {
    const size_t middle = (above + within) / 2;
    (cost(middle) <= target ? within : above) = middle;
  }
  return within;
}

}  // namespace lacuna
