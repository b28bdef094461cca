#include "lacuna/sparsity/semi_sparse.h"

#include <cmath>
#include <utility>
#include <vector>

#include "lacuna/framework/core/error.h"
#include "lacuna/sparsity/group.h"

namespace lacuna {
namespace {

DynamicOptions dynamic_options(const SemiSparseOptions& o) {
  if (!o.pattern.is_structured()) {
    throw ConfigError("semi_sparse needs a pattern, such as {type: nm, n: 2, m: 4}");
  }
  if (!(o.decay >= 0.0) || !std::isfinite(o.decay)) {
    throw ConfigError("semi_sparse: decay must be 0 or more, found " + Config(o.decay).text());
  }
  if (!o.sparsity.is_constant()) {
    throw ConfigError("semi_sparse: the sparsity must be a constant");
  }
  return {.sparsity = o.sparsity,
          .init_method = "topk",
          .param_filter = o.param_filter,
          .pattern = o.pattern,
          .layout = o.layout};
}

// Marks the keys of a target as read. One that does not go with a pattern is reported at its
// place.
void mark_target(const Config& entry, bool has_fan_in) {
  for (const char* key : {"sparsity", "schedule"}) {
    const Config value = entry.get(key);
    if (!value.is_null()) Schedule::from_config(value);
  }
  entry.get("density");
  if (has_fan_in) entry.get("fan_in");
}

}  // namespace

SemiSparseOptions SemiSparseOptions::from_config(const Config& entry, uint64_t seed) {
  // What all algorithms read is checked in a clone: looking makes a key a known one, and the
  // message about an unknown key would offer some that semi_sparse does not take.
  const Config looked_at = entry.clone();
  const SparsityOptions common = SparsityOptions::from_config(looked_at, seed);
  mark_target(entry, looked_at.has("fan_in"));
  const PatternShape pattern = PatternShape::from_config(entry.get("pattern"));
  return {.pattern = pattern,
          .sparsity = common.sparsity,
          .param_filter = ParameterFilter::from_config(entry.get("param_filter")),
          .layout = LayoutOption::from_config(entry, pattern),
          .every = require_at_least(entry, "every", entry.get<int64_t>("every", 1), 1),
          .decay = require_range(entry, "decay", entry.get<double>("decay", 0.0), 0.0, 1e6)};
}

SemiSparse::SemiSparse(const SemiSparseOptions& options)
    : StraightThrough(
          "semi_sparse", dynamic_options(options), options.every, MasterWeight::Remains::Master,
          [](const SparseWeight& weight) {
            return weight.selector().largest(weight.master()->values(), weight.target_nnz());
          }),
      decay_(static_cast<float>(options.decay)) {}

// λ · w at the positions that the mask excludes.
void SemiSparse::add_to_gradient(const SparseWeight& weight, Tensor& gradient) const {
  if (decay_ == 0.0f) return;
  const std::span<float> g = gradient.mutable_storage();
  const std::span<const float> w = weight.master()->values().storage();
  const BitMask used = weight.parameter().pattern()->mask();
  for (size_t i = 0; i < g.size(); ++i) {
    if (!used.test(static_cast<int64_t>(i))) g[i] += decay_ * w[i];
  }
}

// Masks change at every update, their number of positions never does.
void SemiSparse::forecast(Forecast& forecast) const {
  const std::vector<int64_t> targets = options().targets_at(0, 0, forecast.shapes());
  StraightThrough::forecast(forecast);
  for (size_t i = 0; i < targets.size(); ++i) {
    forecast.parameters[i].initial_nnz = forecast.parameters[i].final_nnz = targets[i];
  }
}

std::unique_ptr<SparsityAlgorithm> swap_linear_with_semi_sparse(
    Module& model, const std::map<std::string, SemiSparseOptions>& layers) {
  auto group = std::make_unique<Group>();
  for (const auto& [glob, given] : layers) {
    SemiSparseOptions options = given;
    const ParameterFilter weights({glob, glob + ".weight"});
    options.param_filter = ParameterFilter([weights](const std::string&, const Parameter& p) {
      return p.use == WeightUse::Linear && weights.matches(p);
    });
    bool found = false;
    for (const ParameterPtr& p : model.parameters()) {
      found = found || (p->use == WeightUse::Linear && weights.matches(*p));
    }
    if (!found) {
      throw ConfigError("swap_linear_with_semi_sparse: '" + glob +
                        "' matches no linear layer's weight");
    }
    group->add(options.param_filter, std::make_unique<SemiSparse>(options));
  }
  model.apply(*group);
  return group;
}

void swap_semi_sparse_with_linear(std::unique_ptr<SparsityAlgorithm> swapped) { swapped.reset(); }

}  // namespace lacuna
