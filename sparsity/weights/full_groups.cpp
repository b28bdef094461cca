#include "lacuna/sparsity/weights/full_groups.hpp"

#include <string>
#include <vector>

#include "lacuna/framework/core/random.h"
#include "lacuna/framework/kernels/select/draws.hpp"
#include "lacuna/sparsity/masks/scores.h"

namespace lacuna {

bool begins_pruned(const SparsityTarget& target) {
  return target.has_fan_in() || target.sparsity_at(0, 0, Shape{1}) > 0.0;
}

std::optional<MaskSet> mask_with_full_groups(const SparseWeight& weight, MaskSource source,
                                             const InitMethod& init_method, uint64_t seed) {
  const PatternShape& pattern = weight.selector().pattern();
  if (!pattern.is_nm() || weight.target_nnz() * pattern.m() <= weight.numel() * pattern.n()) {
    return std::nullopt;
  }
  const bool inherits = source == MaskSource::Inherited;
  if (inherits) {
    const MaskSet present = weight.mask();
    const bool is_of_pattern = weight.selector().fit(present) != MaskSelector::Fit::None;
    if (is_of_pattern || present.count() < weight.target_nnz()) return std::nullopt;
  }
  const std::string& method = init_method.name();
  std::vector<float> scores;
  if (inherits || method == "topk") {
    scores = magnitudes(weight.parameter().to_dense().storage());
  } else if (method == "random") {
    DrawnWords words(CounterRng(seed, weight.name() + "/init_mask"));
    scores.resize(static_cast<size_t>(weight.numel()));
    for (float& score : scores) score = CounterRng::uniform_of(words.next());
  } else {
    return std::nullopt;
  }
  return weight.selector().prune_gradually(MaskSet::all(weight.shape()), scores,
                                           weight.target_nnz());
}

}  // namespace lacuna
