#include "lacuna/framework/quantize/smooth.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <utility>

#include "lacuna/framework/autograd/weight_inputs.h"
#include "lacuna/framework/config/names.h"
#include "lacuna/framework/core/error.h"
#include "lacuna/framework/nn/sequential.h"
#include "lacuna/layers/linear.h"
#include "lacuna/layers/parallel.h"
#include "lacuna/layers/residual.h"

namespace lacuna {
namespace {

// A norm, and the linear layers that its output goes into, and into nothing else.
struct Smoothed {
  Module* norm = nullptr;
  std::vector<Linear*> layers = {};
};

bool is_affine_norm(const Module& module) {
  if (module.type() != "layer_norm" && module.type() != "rms_norm") return false;
  return !module.own_parameters().empty() && !module.has_output_transforms();
}

class NormsBefore {
 public:
  explicit NormsBefore(const std::vector<Int8Candidate>& candidates) {
    for (const Int8Candidate& candidate : candidates) {
      if (candidate.reason.empty()) layers_.insert(candidate.layer);
    }
  }

  void visit(Module& module) {
    if (const auto* sequential = dynamic_cast<Sequential*>(&module)) {
      visit_chain(sequential->chain());
    } else if (const auto* residual = dynamic_cast<Residual*>(&module)) {
      visit_chain(residual->layers());
      visit_chain(residual->shortcut());
    }
    for (const auto& [name, child] : module.children()) visit(*child);
  }
  std::vector<Smoothed> take() { return std::move(found_); }

 private:
  // The candidates that alone read what the module is given; empty where others do, too.
  std::vector<Linear*> readers(Module& module) const {
    if (module.has_input_transforms()) return {};
    if (auto* linear = dynamic_cast<Linear*>(&module)) {
      return layers_.contains(linear) ? std::vector<Linear*>{linear} : std::vector<Linear*>{};
    }
    if (const auto* sequential = dynamic_cast<Sequential*>(&module)) {
      const auto& modules = sequential->chain().modules();
      return modules.empty() ? std::vector<Linear*>{} : readers(*modules.front());
    }
    if (dynamic_cast<Parallel*>(&module) == nullptr) return {};
    std::vector<Linear*> all;
    for (const auto& [name, child] : module.children()) {
      const std::vector<Linear*> own = readers(*child);
      if (own.empty()) return {};
      all.insert(all.end(), own.begin(), own.end());
    }
    return all;
  }

  void visit_chain(const Chain& chain) {
    const auto& modules = chain.modules();
    for (size_t i = 0; i + 1 < modules.size(); ++i) {
      if (!is_affine_norm(*modules[i])) continue;
      std::vector<Linear*> layers = readers(*modules[i + 1]);
      if (!layers.empty()) found_.push_back({modules[i], std::move(layers)});
    }
  }

  std::set<const AffineLayer*> layers_;
  std::vector<Smoothed> found_;
};

// The largest |x| of each input of these weights.
std::map<const Parameter*, std::vector<float>> largest_inputs(Module& model,
                                                              const CalibrationRun& run) {
  std::map<const Parameter*, std::vector<float>> largest;
  const NoGrad no_grad;
  const WatchWeightInputs watch(
      [&](const ParameterPtr& weight, const Variable& x, const ConvolutionShape* convolution) {
        if (convolution != nullptr) return;
        const Tensor input = x.value().to(Order::RowMajor);
        const auto features = static_cast<size_t>(input.shape().features());
        std::vector<float>& most = largest[weight.get()];
        most.resize(features);
        const std::span<const float> values = input.storage();
        for (size_t i = 0; i < values.size(); ++i) {
          most[i % features] = std::max(most[i % features], std::abs(values[i]));
        }
      });
  run(model);
  return largest;
}

void smooth_group(const Smoothed& group, const std::vector<float>& inputs, double alpha) {
  std::vector<float> columns(inputs.size());
  for (const Linear* layer : group.layers) {
    const Tensor weight = layer->weight()->to_dense();
    for (int64_t i = 0; i < weight.numel(); ++i) {
      float& most = columns[static_cast<size_t>(i) % columns.size()];
      most = std::max(most, std::abs(weight.data()[i]));
    }
  }
  std::vector<float> factors(inputs.size(), 1.0f);
  for (size_t j = 0; j < factors.size(); ++j) {
    if (inputs[j] == 0.0f || columns[j] == 0.0f || !std::isfinite(inputs[j])) continue;
    const double factor = std::pow(inputs[j], alpha) / std::pow(columns[j], 1.0 - alpha);
    factors[j] = static_cast<float>(std::clamp(factor, 1e-5, 1e5));
  }
  for (const auto& [name, parameter] : group.norm->own_parameters()) {
    Tensor values = parameter->to_dense();
    for (size_t j = 0; j < factors.size(); ++j) {
      values.mutable_data()[static_cast<int64_t>(j)] /= factors[j];
    }
    parameter->assign(values);
  }
  for (const Linear* layer : group.layers) {
    Tensor weight = layer->weight()->to_dense();
    for (int64_t i = 0; i < weight.numel(); ++i) {
      weight.mutable_data()[i] *= factors[static_cast<size_t>(i) % factors.size()];
    }
    layer->weight()->assign(weight);
  }
}

}  // namespace

std::vector<std::string> smooth_model(Module& model, const std::vector<Int8Candidate>& candidates,
                                      double alpha, const CalibrationRun& run) {
  NormsBefore norms(candidates);
  norms.visit(model);
  const std::vector<Smoothed> groups = norms.take();
  std::vector<std::string> without;
  for (const Int8Candidate& candidate : candidates) {
    const bool has_norm = std::ranges::any_of(groups, [&](const Smoothed& group) {
      return std::ranges::find(group.layers, candidate.layer) != group.layers.end();
    });
    if (candidate.reason.empty() && !has_norm) without.push_back(candidate.weight->name());
  }
  const size_t more = without.size() > 8 ? without.size() - 8 : 0;
  std::vector<std::string> shown = without;
  shown.resize(without.size() - more);
  const std::string names = join(shown, ", ") + (more > 0 ? fmt::format(" and {} more", more) : "");
  if (groups.empty()) {
    throw ConfigError(
        "smooth moves the range of activations into a layer_norm or rms_norm right before a "
        "linear layer, and none precedes " +
        names + "; leave `smooth` out");
  }
  const auto inputs = largest_inputs(model, run);
  for (const Smoothed& group : groups) {
    smooth_group(group, inputs.at(group.layers.front()->weight().get()), alpha);
  }
  if (without.empty()) return {};
  return {"smooth: no norm precedes " + names + ", which are quantized as they are"};
}

}  // namespace lacuna
