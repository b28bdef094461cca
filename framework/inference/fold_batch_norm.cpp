#include "lacuna/framework/inference/fold_batch_norm.hpp"

#include <functional>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <utility>
#include <vector>

#include "lacuna/framework/nn/affine_layer.h"
#include "lacuna/framework/nn/sequential.h"
#include "lacuna/framework/nn/shared_parameters.hpp"
#include "lacuna/layers/batch_norm.h"
#include "lacuna/layers/residual.h"

namespace lacuna {
namespace {

// w ← scale w by row, where the pattern has elements.
void scale_rows(Parameter& weight, std::span<const double> scale) {
  const auto multiply = [](std::span<float> row, double factor) {
    for (float& v : row) v = static_cast<float>(static_cast<double>(v) * factor);
  };
  if (weight.pattern()->stores_every_position()) {
    const auto columns = static_cast<size_t>(matrix_columns(weight.shape()));
    const std::span<float> values = weight.mutable_values().mutable_storage();
    for (size_t r = 0; r < scale.size(); ++r) {
      multiply(values.subspan(r * columns, columns), scale[r]);
    }
    return;
  }
  const Positions positions = weight.pattern()->positions();
  const std::span<const int64_t> begin = positions.row_begin();
  Tensor elements = weight.compacted(weight.values());
  for (size_t r = 0; r < scale.size(); ++r) {
    const auto first = static_cast<size_t>(begin[r]);
    const size_t count = static_cast<size_t>(begin[r + 1]) - first;
    multiply(elements.mutable_storage().subspan(first, count), scale[r]);
  }
  weight.assign_elements(elements);
}

// b ← scale b + shift. A bias may be sparse, and is not any more.
void map_bias(Parameter& bias, const BatchNorm::Affine& affine) {
  Tensor values = bias.to_dense();
  float* b = values.mutable_data();
  for (size_t i = 0; i < affine.scale.size(); ++i) {
    b[i] = static_cast<float>(affine.scale[i] * static_cast<double>(b[i]) + affine.shift[i]);
  }
  bias.replace(Pattern::dense(bias.shape()), std::move(values));
}

// Finds the layers that batch normalizations can be folded into.
class Folder {
 public:
  using Apply = std::function<void(AffineLayer&, BatchNorm&, const BatchNorm::Affine&)>;
  /// `through_sums`: also layers whose outputs come to a norm by dropout or the sum of a residual.
  Folder(const Module& model, Apply apply, bool through_sums = false)
      : shared_(shared_parameters(model)), apply_(std::move(apply)), through_sums_(through_sums) {}

  // The module, and all below whose inputs are known.
  void visit(Module& module, const Shape& input) {
    if (const auto* sequential = dynamic_cast<Sequential*>(&module)) {
      return visit_chain(sequential->chain(), input);
    }
    if (const auto* residual = dynamic_cast<Residual*>(&module)) {
      visit_chain(residual->layers(), input);
      return visit_chain(residual->shortcut(), input);
    }
    const std::optional<std::vector<Shape>> inputs = module.child_inputs(input);
    if (!inputs) return;
    auto shape = inputs->begin();
    for (const auto& [name, child] : module.children()) visit(*child, *shape++);
  }

 private:
  struct Step {
    Module* module;
    Shape input;
  };

  void visit_chain(const Chain& chain, const Shape& input) {
    std::vector<Step> steps;
    list_steps(chain, input, steps);
    for (size_t i = 0; i < steps.size(); ++i) {
      auto* norm = i == 0 ? nullptr : dynamic_cast<BatchNorm*>(steps[i].module);
      if (norm != nullptr) fold_all(steps, i - 1, *norm);
    }
    for (const Step& step : steps) visit(*step.module, step.input);
  }

  // What gives the output of this step.
  void fold_all(const std::vector<Step>& steps, size_t last, BatchNorm& norm) {
    const Step& step = steps[last];
    if (!through_sums_ || step.module->has_output_transforms()) return fold(step, norm);
    const auto* residual = dynamic_cast<const Residual*>(step.module);
    if (residual != nullptr) {
      for (const Chain* branch : {&residual->layers(), &residual->shortcut()}) {
        std::vector<Step> inner;
        list_steps(*branch, step.input, inner);
        if (!inner.empty()) fold_all(inner, inner.size() - 1, norm);
      }
    } else if (step.module->type() != "dropout") {
      fold(step, norm);
    } else if (last > 0 && !step.module->has_input_transforms()) {
      fold_all(steps, last - 1, norm);
    }
  }

  // What runs one after the other. Chains within are written out, but for those whose input or
  // output is transformed.
  static void list_steps(const Chain& chain, const Shape& input, std::vector<Step>& steps) {
    const std::vector<Shape> inputs = chain.inputs(input);
    for (size_t i = 0; i < inputs.size(); ++i) {
      Module& module = *chain.modules()[i];
      const auto* inner = dynamic_cast<Sequential*>(&module);
      if (inner == nullptr || module.has_input_transforms() || module.has_output_transforms()) {
        steps.push_back({&module, inputs[i]});
      } else {
        list_steps(inner->chain(), inputs[i], steps);
      }
    }
  }

  void fold(const Step& before, BatchNorm& norm) {
    if (before.module->has_output_transforms() || norm.has_input_transforms()) return;
    auto* layer = dynamic_cast<AffineLayer*>(before.module);
    if (layer == nullptr || !layer->gives_channels(before.input)) return;
    if (norm.is_folded() || shared_.contains(layer->weight().get()) ||
        shared_.contains(layer->bias().get())) {
      return;
    }
    const std::optional<BatchNorm::Affine> affine = norm.affine();
    if (affine) apply_(*layer, norm, *affine);
  }

  std::set<const Parameter*> shared_;
  Apply apply_;
  bool through_sums_;
};

}  // namespace

int64_t fold_batch_norm(Module& model, const Shape& example) {
  int64_t folded = 0;
  Folder(model, [&](AffineLayer& layer, BatchNorm& norm, const BatchNorm::Affine& affine) {
    scale_rows(*layer.weight(), affine.scale);
    map_bias(*layer.require_bias(), affine);
    norm.mark_folded();
    ++folded;
  }).visit(model, example);
  return folded;
}

std::map<const Parameter*, const BatchNorm*> batch_norms_after(Module& model,
                                                               const Shape& example) {
  std::map<const Parameter*, const BatchNorm*> norms;
  Folder(
      model,
      [&](AffineLayer& layer, BatchNorm& norm, const BatchNorm::Affine&) {
        norms[layer.weight().get()] = &norm;
      },
      true)
      .visit(model, example);
  return norms;
}

std::map<std::string, std::vector<double>> batch_norm_factors(Module& model, const Shape& example) {
  std::map<std::string, std::vector<double>> factors;
  Folder(model, [&](AffineLayer& layer, BatchNorm&, const BatchNorm::Affine& affine) {
    factors[layer.weight()->name()] = {affine.scale.begin(), affine.scale.end()};
  }).visit(model, example);
  return factors;
}

}  // namespace lacuna
