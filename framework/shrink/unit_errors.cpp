// Scores by the outputs of the layers that take a unit, and the fit of what stays.
#include <algorithm>
#include <cmath>
#include <map>
#include <string>
#include <vector>

#include "lacuna/framework/core/bit_mask.h"
#include "lacuna/framework/kernels/dense/cholesky.hpp"
#include "lacuna/framework/layouts/mask_set.h"
#include "lacuna/framework/shrink/unit_scores.hpp"
#include "lacuna/sparsity/one_shot/one_shot.h"

namespace lacuna {
namespace {

// Of the mean of the Gram matrix's diagonal, added to it.
constexpr double kDamping = 0.01;

// The slices of weights that take units, by the weights, in the order in which a forward pass meets
// these.
struct TakingLayers {
  TakingLayers(Module& model, const ModelUnits& units, const CalibrationRun& run) {
    std::vector<ParameterPtr> weights;
    for (const UnitGraph::Slice& slice : units.slices) {
      if (!slice.is_input || slice.parameter->use == WeightUse::Embedding) continue;
      slices[slice.parameter.get()] = &slice;
      weights.push_back(slice.parameter);
    }
    layers = layers_in_order(model, run, weights);
  }
  std::map<const Parameter*, const UnitGraph::Slice*> slices;
  std::vector<CalibratedLayer> layers;
};

// The columns of a weight as a matrix that belong to each unit: an input's taps follow each other.
std::map<int32_t, std::vector<int64_t>> columns_of(const UnitGraph::Slice& slice) {
  const Shape& shape = slice.parameter->shape();
  const int64_t taps = shape.numel() / (shape[0] * shape[1]);
  std::map<int32_t, std::vector<int64_t>> columns;
  for (size_t i = 0; i < slice.units.size(); ++i) {
    for (int64_t tap = 0; tap < taps; ++tap) {
      columns[slice.units[i]].push_back(static_cast<int64_t>(i) * taps + tap);
    }
  }
  return columns;
}

// The inverse of the damped Gram matrix; empty where it has none.
std::vector<double> inverse(const InputGram& gram) {
  const int64_t n = gram.features();
  const std::span<const double> matrix = gram.matrix();
  double trace = 0.0;
  for (int64_t i = 0; i < n; ++i) trace += matrix[static_cast<size_t>(i * n + i)];
  std::vector<double> lower(static_cast<size_t>(n * n));
  for (int64_t i = 0; i < n; ++i) {
    for (int64_t j = 0; j <= i; ++j) {
      lower[static_cast<size_t>(i * n + j)] = matrix[static_cast<size_t>(i * n + j)];
    }
    lower[static_cast<size_t>(i * n + i)] += kDamping * trace / static_cast<double>(n);
  }
  if (!(trace > 0.0) || cholesky(n, lower.data()) != n) return {};
  invert_lower(n, lower.data());
  square_lower(n, lower.data());
  for (int64_t i = 0; i < n; ++i) {
    for (int64_t j = 0; j < i; ++j) {
      lower[static_cast<size_t>(j * n + i)] = lower[static_cast<size_t>(i * n + j)];
    }
  }
  return lower;
}

// tr(W_S (H⁻¹_SS)⁻¹ W_Sᵀ).
double removal_error(const float* w, int64_t rows, int64_t n, const std::vector<double>& inverse,
                     const std::vector<int64_t>& columns) {
  const auto size = static_cast<int64_t>(columns.size());
  std::vector<double> block(static_cast<size_t>(size * size));
  for (int64_t i = 0; i < size; ++i) {
    for (int64_t j = 0; j <= i; ++j) {
      block[static_cast<size_t>(i * size + j)] = inverse[static_cast<size_t>(
          columns[static_cast<size_t>(i)] * n + columns[static_cast<size_t>(j)])];
    }
  }
  cholesky(size, block.data());
  double error = 0.0;
  std::vector<double> x(columns.size());
  for (int64_t row = 0; row < rows; ++row) {
    for (size_t i = 0; i < columns.size(); ++i) x[i] = w[row * n + columns[i]];
    solve_factored(size, block.data(), x.data());
    for (size_t i = 0; i < columns.size(); ++i) error += x[i] * w[row * n + columns[i]];
  }
  return error;
}

}  // namespace

std::vector<double> error_scores(Module& model, const ModelUnits& units,
                                 const CalibrationRun& run) {
  std::vector<double> scores(static_cast<size_t>(units.count));
  const TakingLayers taking(model, units, run);
  for (const CalibratedLayer& layer : taking.layers) {
    const std::vector<InputGram> grams = collect_inputs(model, run, layer);
    const Tensor dense = layer.weight->to_dense();
    const int64_t rows = dense.shape()[0], n = dense.shape().numel() / rows;
    const double outputs = output_error(dense, Tensor::zeros(dense.shape()), grams.front()).outputs;
    const std::vector<double> inverted = inverse(grams.front());
    if (inverted.empty() || !(outputs > 0.0)) continue;  // its inputs or its weight are zero
    for (const auto& [unit, columns] : columns_of(*taking.slices.at(layer.weight.get()))) {
      scores[static_cast<size_t>(unit)] +=
          removal_error(dense.data(), rows, n, inverted, columns) / outputs;
    }
  }
  return scores;
}

void fit_without_units(Module& model, const ModelUnits& units, const KeptUnits& kept,
                       const CalibrationRun& run) {
  const TakingLayers taking(model, units, run);
  for (const CalibratedLayer& layer : taking.layers) {
    std::vector<int64_t> removed;
    for (const auto& [unit, columns] : columns_of(*taking.slices.at(layer.weight.get()))) {
      if (kept[static_cast<size_t>(unit)] != 0) continue;
      removed.insert(removed.end(), columns.begin(), columns.end());
    }
    if (removed.empty()) continue;
    const std::vector<InputGram> grams = collect_inputs(model, run, layer);
    const Tensor dense = layer.weight->to_dense();
    const int64_t rows = dense.shape()[0], n = dense.shape().numel() / rows;
    const ByteArray present = layer.weight->mask();
    BitMask bits = BitMask::zeros(dense.shape().numel());
    std::vector<uint8_t> stays(static_cast<size_t>(n), 1);
    for (const int64_t column : removed) stays[static_cast<size_t>(column)] = 0;
    for (int64_t i = 0; i < rows * n; ++i) {
      if (stays[static_cast<size_t>(i % n)] != 0 && present.values[static_cast<size_t>(i)] != 0) {
        bits.set(i);
      }
    }
    const PrunedWeight fitted =
        fit_least_squares(layer.weight->name(), dense, grams.front(),
                          MaskSet(dense.shape(), std::move(bits)), kDamping);
    layer.weight->assign(fitted.weight);
  }
}

}  // namespace lacuna
