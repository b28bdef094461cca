#include "lacuna/sparsity/semi_sparse.h"

#include <cmath>
#include <utility>
#include <vector>

#include "lacuna/framework/core/error.h"
#include "lacuna/sparsity/group.h"
#include "lacuna/sparsity/largest_part.h"

namespace lacuna {
namespace {

DynamicOptions dynamic_options(const SemiSparseOptions& o) {
  if (!o.structure.exists()) {
    throw ConfigError("semi_sparse needs a pattern, such as {type: nm, n: 2, m: 4}");
  }
  if (!(o.decay >= 0.0) || !std::isfinite(o.decay)) {
    throw ConfigError("semi_sparse: decay must be 0 or more, found " + Config(o.decay).text());
  }
  if (!o.sparsity.is_constant()) {
    throw ConfigError("semi_sparse: the sparsity must be a constant");
  }
  DynamicOptions options;
  options.sparsity = o.sparsity;
  options.init_method = "topk";
  options.param_filter = o.param_filter;
  options.structure = o.structure;
  options.layout = o.layout;
  return options;
}

}  // namespace

SemiSparseOptions SemiSparseOptions::from_config(const Config& entry, uint64_t seed) {
  const SparsityOptions common = SparsityOptions::from_config(entry, seed);
  return {.structure = common.structure,
          .sparsity = common.sparsity,
          .param_filter = common.param_filter,
          .layout = common.layout,
          .every = require_at_least(entry, "every", entry.get<int64_t>("every", 1), 1),
          .decay = require_range(entry, "decay", entry.get<double>("decay", 0.0), 0.0, 1e6)};
}

SemiSparse::SemiSparse(const SemiSparseOptions& options)
    : SelectedPart("semi_sparse", dynamic_options(options), options.every),
      decay_(static_cast<float>(options.decay)) {}

SemiSparse::~SemiSparse() { SemiSparse::release(); }

// The part of the master that is used.
BitMask SemiSparse::select(const Parameter& parameter) const {
  return largest_part(options().structure, master(parameter), target_nnz(parameter));
}

void SemiSparse::adjust_gradient(const Parameter& parameter, Tensor& gradient) const {
  if (decay_ == 0.0f) return;
  const std::span<float> g = gradient.mutable_storage();
  const std::span<const float> w = master(parameter).storage();
  const BitMask used = parameter.pattern()->mask();
  for (size_t i = 0; i < g.size(); ++i) {
    if (!used.test(static_cast<int64_t>(i))) g[i] += decay_ * w[i];
  }
}

// Masks change at every update, their number of positions never does.
void SemiSparse::foresee(std::vector<PlannedParameter>& planned, int64_t steps) const {
  std::vector<Shape> shapes;
  for (const PlannedParameter& parameter : planned) shapes.push_back(parameter.shape);
  const std::vector<int64_t> targets = targets_at(0, 0, shapes);
  for (size_t i = 0; i < planned.size(); ++i) planned[i].initial_nnz = targets[i];
  SelectedPart::foresee(planned, steps);
  for (PlannedParameter& parameter : planned) parameter.final_nnz = parameter.initial_nnz;
}

void SemiSparse::release() {
  for (const ParameterPtr& parameter : parameters()) {
    parameter->replace(Pattern::dense(parameter->shape()), master(*parameter));
  }
  release_loaded();
}

// The masters are those of another step.
void SemiSparse::release_loaded() { SelectedPart::release(); }

std::unique_ptr<SparsityAlgorithm> swap_linear_with_semi_sparse(
    Module& model, const std::map<std::string, SemiSparseOptions>& layers) {
  auto group = std::make_unique<Group>();
  for (const auto& [glob, given] : layers) {
    SemiSparseOptions options = given;
    const ParameterFilter weights({glob, glob + ".weight"});
    options.param_filter = ParameterFilter([weights](const std::string&, const Parameter& p) {
      return p.is_linear_weight && weights.matches(p);
    });
    bool found = false;
    for (const ParameterPtr& p : model.parameters()) {
      found = found || (p->is_linear_weight && weights.matches(*p));
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
