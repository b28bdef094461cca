#include "lacuna/sparsity/srigl.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

#include "lacuna/framework/core/error.h"
#include "lacuna/framework/nn/tiled_output.h"

namespace lacuna {
namespace {

// Nonzeros of each active row: what comes nearest to the target in all.
int64_t fan_in(int64_t target, int64_t active, int64_t columns) {
  if (target == 0 || active == 0) return 0;
  return std::clamp<int64_t>((target + active / 2) / active, 1, columns);
}

int64_t rows_in(const Shape& shape) { return shape[0]; }
int64_t columns_in(const Shape& shape) { return shape[0] == 0 ? 0 : shape.numel() / shape[0]; }

// Each row a competition of its own.
MaskSelector each_row(const Shape& shape) {
  return MaskSelector(ScoreGroups::rows(std::max<int64_t>(shape[0], 1)), PatternShape(), shape);
}

// The positions of a mask in active rows.
MaskSet in_active_rows(const MaskSet& mask, const std::vector<bool>& is_active) {
  const Positions& positions = mask.positions();
  std::vector<bool> stays(static_cast<size_t>(positions.count()));
  for (size_t row = 0; row < is_active.size(); ++row) {
    const auto begin = positions.row_begin()[row], end = positions.row_begin()[row + 1];
    std::fill(stays.begin() + begin, stays.begin() + end, is_active[row]);
  }
  return MaskSet(mask.shape(), positions.filtered([&](size_t place) { return stays[place]; }));
}

// `mask` with the first `count` positions in each row that is not active: rows that are full grow
// nothing. *Requires* that these rows are empty.
MaskSet with_idle_rows_full(const MaskSet& mask, const std::vector<bool>& is_active,
                            int64_t count) {
  std::vector<int64_t> filled;
  const int64_t columns = columns_in(mask.shape());
  for (size_t row = 0; row < is_active.size(); ++row) {
    if (is_active[row]) continue;
    for (int64_t c = 0; c < count; ++c) {
      filled.push_back(static_cast<int64_t>(row) * columns + c);
    }
  }
  return MaskSet(mask.shape(), mask.positions().with(filled));
}

MaskSet common(const MaskSet& a, const MaskSet& b) {
  const Array<int32_t> places = places_in(b.positions(), a.positions());
  return MaskSet(a.shape(),
                 a.positions().filtered([&](size_t place) { return places[place] >= 0; }));
}

}  // namespace

SRigL::SRigL(Options given)
    : DynamicSparsityAlgorithm(given.common), min_salient_(given.min_salient) {
  if (!(min_salient_ >= 0.0 && min_salient_ <= 1.0)) {
    throw ConfigError("srigl: min_salient must be in [0, 1], found " + Config(min_salient_).text());
  }
  const auto refuse = [](const std::string& what) {
    throw ConfigError("srigl: " + what + " cannot be combined with a constant fan-in");
  };
  if (options().groups.along != ScoreGroups::Along::Flat) refuse("a balance of groups");
  if (options().pattern.is_structured()) refuse("a pattern");
  if (keeps_alive()) refuse("keep_alive");
  const std::string& name = options().init_method.name();
  if (name != "random" && name != "topk" && name != "inherit") {
    refuse("init_method '" + name + "' (take random, topk or inherit)");
  }
}

void SRigL::adopt(Module& module, std::vector<ParameterPtr> parameters, MaskSource source) {
  for (const ParameterPtr& parameter : module.parameters()) {
    const bool has_outputs =
        parameter->use == WeightUse::Linear || parameter->use == WeightUse::Convolution;
    if (has_outputs) outputs_ = {parameter->name()};
  }
  for (const Module* part : module.modules()) {
    const auto* tiled = dynamic_cast<const TiledOutput*>(part);
    if (tiled == nullptr || outputs_.empty()) continue;
    const std::vector<ParameterPtr> tiles = tiled->tile_weights();
    if (tiles.back()->name() != outputs_.front()) continue;
    outputs_.clear();
    for (const ParameterPtr& tile : tiles) outputs_.push_back(tile->name());
    break;
  }
  DynamicSparsityAlgorithm::adopt(module, std::move(parameters), source);
}

bool SRigL::wants_dense_gradient(int64_t step) const { return update_schedule().is_update(step); }

MaskSet SRigL::initial_mask(const SparseWeight& weight, MaskSource source) {
  const int64_t rows = rows_in(weight.shape()), columns = columns_in(weight.shape());
  const MaskSelector select = each_row(weight.shape());
  const MaskSet present = weight.mask();
  if (source == MaskSource::Made) {
    if (!update_schedule().is_update(0)) return MaskSet::all(weight.shape());
    const int64_t count = rows * fan_in(weight.target_nnz(), rows, columns);
    return options().init_method.name() == "topk"
               ? select.keep(present, weight.magnitudes().storage(), count)
               : select.grow_random(rng(weight, "/first"), count, MaskSet(weight.shape()));
  }
  // Rows that an earlier phase or run has emptied stay empty until the first update.
  std::vector<bool> is_active;
  for (int64_t row = 0; row < rows; ++row) {
    is_active.push_back(!present.positions().row(row).empty());
  }
  const auto active = std::count(is_active.begin(), is_active.end(), true);
  const int64_t most = std::min(weight.target_nnz(), present.count());
  const int64_t each = fan_in(most, active, columns);
  const MaskSet kept = select.keep(present, weight.magnitudes().storage(), rows * each);
  const MaskSet grown = select.grow_random(rng(weight, "/first"), rows * each,
                                           with_idle_rows_full(kept, is_active, each));
  return in_active_rows(grown, is_active);
}

// By the salient weights that rows have.
std::vector<bool> SRigL::active_rows(const SparseWeight& weight, const MaskSet& salient) const {
  const int64_t rows = rows_in(weight.shape()), columns = columns_in(weight.shape());
  std::vector<bool> is_active(static_cast<size_t>(rows), true);
  if (min_salient_ == 0.0 || std::ranges::find(outputs_, weight.name()) != outputs_.end() ||
      columns == 0)
    return is_active;
  const auto count = [&](int64_t row) {
    return static_cast<int64_t>(salient.positions().row(row).size());
  };
  std::vector<int64_t> by_count(static_cast<size_t>(rows));
  std::iota(by_count.begin(), by_count.end(), 0);
  std::ranges::stable_sort(by_count, [&](int64_t a, int64_t b) { return count(a) > count(b); });
  const int64_t least = std::max<int64_t>((weight.target_nnz() + columns - 1) / columns, 1);
  const auto wanted = std::max<int64_t>(
      static_cast<int64_t>(min_salient_ *
                           static_cast<double>(fan_in(weight.target_nnz(), rows, columns))),
      1);
  for (int64_t place = 0; place < rows; ++place) {
    const int64_t row = by_count[static_cast<size_t>(place)];
    is_active[static_cast<size_t>(row)] = place < least || count(row) >= wanted;
  }
  return is_active;
}

MaskSet SRigL::update_mask(const SparseWeight& weight, const MaskSet& mask, float) {
  const int64_t rows = rows_in(weight.shape()), columns = columns_in(weight.shape());
  const MaskSelector& together = weight.selector();
  const Tensor magnitudes = weight.magnitudes();
  const MaskSet kept = together.keep(mask, magnitudes.storage(),
                                     together.kept_after_drop(drop_fraction(), mask.count()));
  const Scores gradient = gradient_rows(weight);
  const std::vector<bool> is_active =
      active_rows(weight, together.grow_maximum(gradient, weight.target_nnz(), kept));
  const auto active = std::count(is_active.begin(), is_active.end(), true);
  const int64_t each = fan_in(weight.target_nnz(), active, columns);

  // What a drop keeps of a row are its largest weights, and so are these: the fewer are in both.
  const MaskSelector by_row = each_row(weight.shape());
  const MaskSet largest = by_row.keep(mask, magnitudes.storage(), rows * each);
  const MaskSet stays = in_active_rows(common(kept, largest), is_active);
  const MaskSet grown =
      by_row.grow_maximum(gradient, rows * each, with_idle_rows_full(stays, is_active, each));
  return in_active_rows(grown, is_active);
}

int64_t SRigL::nnz_after_update(const MaskSelector& selector, int64_t, int64_t target,
                                float) const {
  const int64_t rows = rows_in(selector.shape());
  return rows * fan_in(target, rows, columns_in(selector.shape()));
}

// Ablation decides on the rounding.
void SRigL::forecast(Forecast& forecast) const {
  DynamicSparsityAlgorithm::forecast(forecast);
  forecast.is_exact = false;
}

}  // namespace lacuna
