#include "lacuna/sparsity/snfs.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>
#include <vector>

#include "lacuna/framework/core/error.h"
#include "lacuna/sparsity/options/counting.hpp"
#include "lacuna/sparsity/options/group_count.hpp"

namespace lacuna {

Snfs::Snfs(Options given)
    : Set(std::move(given.common)), momentum_(given.momentum), redistribute_(given.redistribute) {
  if (!(momentum_ >= 0.0 && momentum_ < 1.0)) {
    throw ConfigError("snfs: momentum must be in [0, 1), found " + Config(momentum_).text());
  }
  if (redistribute_ && divides(options().groups)) {
    throw ConfigError(
        "snfs: redistribution cannot be combined with balanced groups; set redistribute: false");
  }
  if (redistribute_ && options().pattern.is_structured()) {
    throw ConfigError(
        "snfs: redistribution cannot be combined with a pattern; set redistribute: false");
  }
  if (keeps_alive()) {
    throw ConfigError(
        "snfs: keep_alive is for set and rigl; snfs shares its growth out by momentum");
  }
}

void Snfs::update(Optimizer& optimizer) {
  update_momentum();
  counts_.clear();
  if (redistribute_ && update_schedule().is_update(step() + 1)) share_out();
  Set::update(optimizer);
}

void Snfs::update_momentum() {
  const auto alpha = static_cast<float>(momentum_);
  for (const SparseWeight& weight : weights()) {
    const Tensor& gradient = dense_gradient(weight);
    Tensor& moment = moments_[weight.name()];
    if (!moment.defined()) moment = Tensor::zeros(weight.shape());
    const std::span<float> m = moment.mutable_storage();
    const std::span<const float> g = gradient.storage();
    for (size_t i = 0; i < m.size(); ++i) m[i] = alpha * m[i] + (1.0f - alpha) * g[i];
  }
}

// What each parameter keeps after the drop, and its share of what all grow to reach their targets
// together, by the mean |M| of its nonzeros; a share that does not fit goes to the others
// (round_to_budget).
void Snfs::share_out() {
  std::vector<double> shares;
  std::vector<Shape> shapes;
  std::vector<int64_t> numels, kept;
  double total = 0.0;
  for (const SparseWeight& weight : weights()) {
    const std::span<const float> m = moments_.at(weight.name()).storage();
    const MaskSet mask = weight.mask();
    double sum = 0.0;
    mask.positions().for_each([&](int64_t i) { sum += std::abs(m[static_cast<size_t>(i)]); });
    const int64_t nnz = mask.count();
    shares.push_back(nnz == 0 ? 0.0 : sum / static_cast<double>(nnz));
    total += shares.back();
    kept.push_back(kept_after_drop(drop_fraction_at(step() + 1, updates()), nnz));
    numels.push_back(weight.numel() - kept.back());
    shapes.push_back(weight.shape());
  }
  const std::vector<int64_t> targets = options().targets_at(step() + 1, updates(), shapes);
  const int64_t budget = std::max<int64_t>(
      std::reduce(targets.begin(), targets.end()) - std::reduce(kept.begin(), kept.end()), 0);
  for (double& share : shares) {
    share = total > 0.0 ? static_cast<double>(budget) * share / total
                        : static_cast<double>(budget) / static_cast<double>(shares.size());
  }
  const std::vector<int64_t> grown = round_to_budget(shares, numels, budget);
  for (size_t i = 0; i < grown.size(); ++i) counts_[weights()[i].name()] = kept[i] + grown[i];
}

MaskSet Snfs::grow(const SparseWeight& weight, const MaskSet& kept, int64_t count) {
  const auto shared = counts_.find(weight.name());
  return weight.selector().grow_maximum(rows_of(moments_.at(weight.name())),
                                        shared != counts_.end() ? shared->second : count, kept);
}

StateDict Snfs::state_dict() const {
  StateDict state = Set::state_dict();
  for (const auto& [name, moment] : moments_) state.set("momentum/" + name, moment.clone());
  return state;
}

void Snfs::load_state_dict(const StateDict& state) {
  Set::load_state_dict(state);
  moments_.clear();
  for (const SparseWeight& weight : weights()) {
    if (!state.contains("momentum/" + weight.name())) continue;  // before the first step
    moments_[weight.name()] = saved_array(state, "momentum", weight.parameter());
  }
}

}  // namespace lacuna
