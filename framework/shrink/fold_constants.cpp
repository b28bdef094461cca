#include "lacuna/framework/shrink/fold_constants.hpp"

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "lacuna/framework/autograd/weight_inputs.h"
#include "lacuna/framework/inference/fold_batch_norm.hpp"
#include "lacuna/framework/nn/evaluation_mode.hpp"
#include "lacuna/framework/nn/shared_parameters.hpp"
#include "lacuna/layers/batch_norm.h"

namespace lacuna {
namespace {

// Means of what a weight's inputs (its dimension 1) are given.
struct InputMeans {
  const UnitGraph::Slice* slice = nullptr;
  std::vector<double> sums = {};
  double count = 0.0;

  void add(const Tensor& input, bool is_convolution) {
    const Tensor rows = input.to(Order::RowMajor);
    const int64_t inputs = static_cast<int64_t>(slice->units.size());
    const int dim = is_convolution ? 1 : rows.shape().rank() - 1;
    int64_t inner = 1;
    for (int i = dim + 1; i < rows.shape().rank(); ++i) inner *= rows.shape()[i];
    sums.resize(slice->units.size());
    for (int64_t i = 0; i < rows.shape().numel(); ++i) {
      sums[static_cast<size_t>(i / inner % inputs)] += rows.data()[i];
    }
    count += static_cast<double>(rows.shape().numel() / inputs);
  }
};

// What removed inputs add to each output, in the mean.
std::vector<double> constants_of(const InputMeans& means, const KeptUnits& kept) {
  const Parameter& weight = *means.slice->parameter;
  const Tensor dense = weight.to_dense();
  const int64_t rows = weight.shape()[0], inputs = weight.shape()[1];
  const int64_t taps = weight.numel() / (rows * inputs);
  std::vector<double> constants(static_cast<size_t>(rows));
  for (int64_t i = 0; i < weight.numel(); ++i) {
    const auto input = static_cast<size_t>(i / taps % inputs);
    if (kept[static_cast<size_t>(means.slice->units[input])] != 0) continue;
    constants[static_cast<size_t>(i / (taps * inputs))] +=
        static_cast<double>(dense.data()[i]) * means.sums[input] / means.count;
  }
  return constants;
}

ParameterPtr bias_of(const Module& model, const Parameter& weight) {
  const size_t dot = weight.name().rfind('.');
  if (dot == std::string::npos) return nullptr;
  const std::string name = weight.name().substr(0, dot) + ".bias";
  for (const ParameterPtr& parameter : model.parameters()) {
    if (parameter->name() == name) return parameter;
  }
  return nullptr;
}

Tensor& running_mean_of(Module& model, const BatchNorm& norm) {
  const auto buffers = model.buffers();
  return *std::ranges::find_if(buffers, [&](const auto& entry) {
            return entry.second == &norm.running_mean();
          })->second;
}

void subtract(Tensor& from, const std::vector<double>& constants, double factor) {
  float* values = from.mutable_data();
  for (size_t i = 0; i < constants.size(); ++i) {
    values[i] -= static_cast<float>(factor * constants[i]);
  }
}

}  // namespace

std::vector<std::string> fold_constants(Module& model, const Shape& example,
                                        const ModelUnits& units, const KeptUnits& kept,
                                        const CalibrationRun& run) {
  std::map<const Parameter*, InputMeans> means;
  for (const UnitGraph::Slice& slice : units.slices) {
    const bool has_removed = std::ranges::any_of(
        slice.units, [&](int32_t unit) { return kept[static_cast<size_t>(unit)] == 0; });
    if (slice.is_input && has_removed) means[slice.parameter.get()].slice = &slice;
  }
  if (means.empty()) return {};
  {
    const EvaluationMode evaluates(model);
    const WatchWeightInputs watch([&](const ParameterPtr& weight, const Variable& input,
                                      const ConvolutionShape* convolution) {
      const auto found = means.find(weight.get());
      if (found != means.end()) found->second.add(input.value(), convolution != nullptr);
    });
    run(model);
  }
  const std::set<const Parameter*> shared = shared_parameters(model);
  const auto norms = batch_norms_after(model, example);
  std::vector<std::string> without;
  for (const UnitGraph::Slice& slice : units.slices) {  // in the model's order
    const auto found = means.find(slice.parameter.get());
    if (found == means.end() || !slice.is_input || !(found->second.count > 0.0)) continue;
    const std::vector<double> constants = constants_of(found->second, kept);
    if (std::ranges::all_of(constants, [](double c) { return c == 0.0; })) continue;
    const auto norm = norms.find(slice.parameter.get());
    const ParameterPtr bias = bias_of(model, *slice.parameter);
    const bool is_whole = bias != nullptr && bias->pattern()->nnz() == bias->numel();
    if (shared.contains(slice.parameter.get()) || shared.contains(bias.get())) {
      without.push_back(slice.parameter->name());  // other layers get other constants
    } else if (!is_whole && norm != norms.end()) {
      Tensor& mean = running_mean_of(model, *norm->second);
      Tensor values = mean.clone();
      subtract(values, constants, 1.0);
      mean = values;
    } else {
      if (!is_whole) without.push_back(slice.parameter->name());
      if (bias == nullptr) continue;
      Tensor values = bias->to_dense();
      subtract(values, constants, -1.0);
      bias->assign(values);  // of a sparse bias, what it keeps
    }
  }
  return without;
}

}  // namespace lacuna
