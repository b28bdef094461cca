#include "lacuna/framework/shrink/unit_scores.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <string>
#include <utility>

#include "lacuna/framework/core/error.h"
#include "lacuna/framework/shrink/unit_choice.hpp"

namespace lacuna {
namespace {

// A parameter's array, aligned to its pattern, in its shape.
Tensor unpacked(const Parameter& parameter, const Tensor& aligned) {
  if (aligned.shape() == parameter.shape()) return aligned.to(Order::RowMajor);
  const Tensor elements = parameter.compacted(aligned);
  const ByteArray mask = parameter.mask();
  Tensor full = Tensor::zeros(parameter.shape());
  float* values = full.mutable_data();
  size_t next = 0;
  for (size_t i = 0; i < mask.values.size(); ++i) {
    if (mask.values[i] != 0) values[i] = elements.data()[next++];
  }
  return full;
}

// Adds value(i) of each element to the sum of its index along a dimension.
template <class Value>
std::vector<double> sums_along(const Shape& shape, int dim, const Value& value) {
  int64_t inner = 1;
  for (int i = dim + 1; i < shape.rank(); ++i) inner *= shape[i];
  std::vector<double> sums(static_cast<size_t>(shape[dim]));
  for (int64_t i = 0; i < shape.numel(); ++i) {
    sums[static_cast<size_t>(i / inner % shape[dim])] += value(static_cast<size_t>(i));
  }
  return sums;
}

std::vector<double> by_unit(const ModelUnits& units, const UnitGraph::Slice& slice,
                            const std::vector<double>& by_index) {
  std::vector<double> sums(static_cast<size_t>(units.count));
  for (size_t i = 0; i < by_index.size(); ++i) {
    sums[static_cast<size_t>(slice.units[i])] += by_index[i];
  }
  return sums;
}

std::vector<int32_t> distinct(UnitGraph::Units units) {
  std::ranges::sort(units);
  units.erase(std::unique(units.begin(), units.end()), units.end());
  return units;
}

bool is_bias(const Parameter& parameter) {
  return parameter.shape().rank() == 1 && parameter.name().ends_with("bias");
}

// Factors of the units, means over what gives them or takes them.
struct Means {
  std::vector<double> sums, counts;
  explicit Means(int64_t count)
      : sums(static_cast<size_t>(count)), counts(static_cast<size_t>(count)) {}
  double of(size_t unit) const { return counts[unit] > 0.0 ? sums[unit] / counts[unit] : 1.0; }
};

}  // namespace

std::vector<double> magnitude_scores(const ModelUnits& units) {
  Means gives(units.count), takes(units.count);
  for (const UnitGraph::Slice& slice : units.slices) {
    const Parameter& parameter = *slice.parameter;
    if (is_bias(parameter)) continue;
    const Tensor dense = parameter.to_dense();
    const float* w = dense.data();
    const std::vector<double> sums =
        by_unit(units, slice, sums_along(parameter.shape(), slice.dim, [w](size_t i) {
                  return static_cast<double>(w[i]) * w[i];
                }));
    const std::vector<int32_t> own = distinct(slice.units);
    double total = 0.0;
    for (const int32_t unit : own) total += sums[static_cast<size_t>(unit)];
    const double mean = total > 0.0 ? total / static_cast<double>(own.size()) : 1.0;
    Means& means = slice.is_input ? takes : gives;
    for (const int32_t unit : own) {
      means.sums[static_cast<size_t>(unit)] += sums[static_cast<size_t>(unit)] / mean;
      means.counts[static_cast<size_t>(unit)] += 1.0;
    }
  }
  std::vector<double> scores;
  for (size_t unit = 0; unit < static_cast<size_t>(units.count); ++unit) {
    scores.push_back(gives.of(unit) * takes.of(unit));
  }
  return scores;
}

std::vector<double> loss_changes(const ModelUnits& units) {
  std::vector<uint8_t> is_taken(static_cast<size_t>(units.count));
  for (const UnitGraph::Slice& slice : units.slices) {
    if (!slice.is_input) continue;
    for (const int32_t unit : slice.units) is_taken[static_cast<size_t>(unit)] = 1;
  }
  std::vector<double> changes(static_cast<size_t>(units.count));
  for (const UnitGraph::Slice& slice : units.slices) {
    const Parameter& parameter = *slice.parameter;
    if (!parameter.has_gradient()) continue;
    const Tensor dense = parameter.to_dense();
    const Tensor gradient = unpacked(parameter, parameter.gradient());
    const float *w = dense.data(), *g = gradient.data();
    const std::vector<double> sums = sums_along(parameter.shape(), slice.dim, [w, g](size_t i) {
      return static_cast<double>(w[i]) * g[i];
    });
    for (size_t i = 0; i < sums.size(); ++i) {
      const auto unit = static_cast<size_t>(slice.units[i]);
      if (slice.is_input == (is_taken[unit] != 0)) changes[unit] += sums[i];
    }
  }
  return changes;
}

std::vector<double> saliency_scores(Module& model, const ModelUnits& units,
                                    const GradientRun& run) {
  const std::vector<ParameterPtr> parameters = model.parameters();
  std::vector<bool> trained;
  for (const ParameterPtr& parameter : parameters) {
    trained.push_back(std::exchange(parameter->trainable, true));
    parameter->zero_gradient();
  }
  std::vector<double> scores(static_cast<size_t>(units.count));
  run(model, [&] {
    const std::vector<double> changes = loss_changes(units);
    for (size_t i = 0; i < scores.size(); ++i) scores[i] += changes[i] * changes[i];
    for (const ParameterPtr& parameter : parameters) parameter->zero_gradient();
  });
  for (size_t i = 0; i < parameters.size(); ++i) parameters[i]->trainable = trained[i];
  if (!std::ranges::all_of(scores, [](double score) { return std::isfinite(score); })) {
    throw DataError(
        "saliency: the gradients of the loss are not finite on the calibration examples; look for "
        "very large values in the training data and in the weights, or give method: magnitude");
  }
  return scores;
}

KeptUnits living_units(const ModelUnits& units, const ShrinkOptions& options) {
  KeptUnits kept(static_cast<size_t>(units.count), 1);
  std::vector<uint8_t> may_go(kept.size());
  for (const int32_t unit : removable_units(units, options)) may_go[static_cast<size_t>(unit)] = 1;
  std::vector<ByteArray> masks;
  std::map<const Parameter*, std::vector<const UnitGraph::Slice*>> slices_of;
  for (const UnitGraph::Slice& slice : units.slices) {
    const bool is_dense = slice.parameter->pattern()->is_dense();
    masks.push_back(is_dense ? ByteArray{} : slice.parameter->mask());
    slices_of[slice.parameter.get()].push_back(&slice);
  }
  // Whether an element of a parameter lies between units that stay.
  const auto lives = [&](const Parameter& parameter, size_t element) {
    return std::ranges::all_of(slices_of[&parameter], [&](const UnitGraph::Slice* slice) {
      int64_t inner = 1;
      for (int i = slice->dim + 1; i < parameter.shape().rank(); ++i) inner *= parameter.shape()[i];
      const int64_t index = static_cast<int64_t>(element) / inner % parameter.shape()[slice->dim];
      return kept[static_cast<size_t>(slice->units[static_cast<size_t>(index)])] != 0;
    });
  };
  for (bool has_changed = true; std::exchange(has_changed, false);) {
    std::vector<uint8_t> is_given(kept.size()), is_taken(kept.size());
    std::vector<uint8_t> has_giver(kept.size()), has_taker(kept.size());
    for (size_t s = 0; s < units.slices.size(); ++s) {
      const UnitGraph::Slice& slice = units.slices[s];
      const Parameter& parameter = *slice.parameter;
      if (parameter.shape().rank() < 2) continue;
      const bool is_dense = parameter.pattern()->is_dense();
      const std::vector<double> nonzeros = sums_along(parameter.shape(), slice.dim, [&](size_t i) {
        return (is_dense || masks[s].values[i] != 0) && lives(parameter, i) ? 1.0 : 0.0;
      });
      for (size_t i = 0; i < nonzeros.size(); ++i) {
        const auto unit = static_cast<size_t>(slice.units[i]);
        (slice.is_input ? has_taker : has_giver)[unit] = 1;
        if (nonzeros[i] > 0.0) (slice.is_input ? is_taken : is_given)[unit] = 1;
      }
    }
    for (size_t unit = 0; unit < kept.size(); ++unit) {
      if (kept[unit] == 0 || may_go[unit] == 0) continue;
      const bool is_dead = (has_giver[unit] != 0 && is_given[unit] == 0) ||
                           (has_taker[unit] != 0 && is_taken[unit] == 0);
      if (!is_dead) continue;
      kept[unit] = 0;
      has_changed = true;
    }
  }
  return kept;
}

}  // namespace lacuna
