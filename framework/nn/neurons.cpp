#include "lacuna/framework/nn/neurons.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <string>
#include <vector>

#include "lacuna/framework/core/error.h"

namespace lacuna {
namespace {

using Flags = std::vector<char>;  // by neuron of a layer

Flags all(int64_t count) { return Flags(static_cast<size_t>(count), 1); }
bool any(const Flags& flags) { return std::ranges::find(flags, 1) != flags.end(); }

// Outputs with a nonzero from a flagged input.
Flags forward(const Pattern& weight, const Flags& inputs) {
  Flags outputs(static_cast<size_t>(weight.shape()[0]));
  if (weight.is_dense()) {
    std::ranges::fill(outputs, any(inputs) ? 1 : 0);
    return outputs;
  }
  const Positions positions = weight.positions();
  for (size_t r = 0; r < outputs.size(); ++r) {
    for (const uint32_t column : positions.row(static_cast<int64_t>(r))) {
      outputs[r] |= inputs[column];
    }
  }
  return outputs;
}

// Inputs with a nonzero to a flagged output.
Flags backward(const Pattern& weight, const Flags& outputs) {
  Flags inputs(static_cast<size_t>(weight.shape()[1]));
  if (weight.is_dense()) {
    std::ranges::fill(inputs, any(outputs) ? 1 : 0);
    return inputs;
  }
  const Positions positions = weight.positions();
  for (size_t r = 0; r < outputs.size(); ++r) {
    if (outputs[r] == 0) continue;
    for (const uint32_t column : positions.row(static_cast<int64_t>(r))) inputs[column] = 1;
  }
  return inputs;
}

bool joins_branches(const Module& module) {
  return module.joins_branches() || std::ranges::any_of(module.children(), [](const auto& child) {
           return joins_branches(*child.second);
         });
}

}  // namespace

NeuronCounts count_neurons(std::span<const PatternPtr> chain) {
  if (chain.empty()) return {};
  std::vector<Flags> reached{all(chain.front()->shape()[1])};
  for (const PatternPtr& weight : chain) {
    if (weight->shape()[1] != static_cast<int64_t>(reached.back().size())) {
      throw ShapeError(fmt::format("a weight of shape {} cannot follow one of {} outputs",
                                   weight->shape().to_string(), reached.back().size()));
    }
    reached.push_back(forward(*weight, reached.back()));
  }
  NeuronCounts counts;
  Flags reaching = all(chain.back()->shape()[0]);
  for (size_t layer = reached.size(); layer-- > 0;) {
    counts.neurons += static_cast<int64_t>(reaching.size());
    for (size_t i = 0; i < reaching.size(); ++i) counts.on_path += reached[layer][i] & reaching[i];
    if (layer > 0) reaching = backward(*chain[layer - 1], reaching);
  }
  return counts;
}

std::optional<NeuronCounts> count_neurons(const Module& model) {
  std::vector<PatternPtr> chain;
  if (joins_branches(model)) return std::nullopt;
  for (const ParameterPtr& parameter : model.parameters()) {
    if (parameter->use == WeightUse::Convolution) return std::nullopt;
    if (parameter->use != WeightUse::Linear) continue;
    const PatternPtr& weight = parameter->pattern();
    if (!chain.empty() && chain.back()->shape()[0] != weight->shape()[1]) return std::nullopt;
    chain.push_back(weight);
  }
  if (chain.empty()) return std::nullopt;
  return count_neurons(chain);
}

}  // namespace lacuna
