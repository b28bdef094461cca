#include "lacuna/framework/train/checks/causality_check.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "lacuna/framework/autograd/tokens/token_ids.h"
#include "lacuna/framework/nn/evaluation_mode.hpp"
#include "lacuna/framework/nn/named_inputs.h"

namespace lacuna {
namespace {

// The first example twice, the second time with another last token.
NamedTensors two_endings(const Dataset& data) {
  const int64_t first = 0;
  const Batch batch = data.gather(std::span(&first, 1));
  NamedTensors named;
  for (const auto& [name, tensor] : batch.named) {
    std::vector<int64_t> values(tensor.values().begin(), tensor.values().end());
    values.insert(values.end(), tensor.values().begin(), tensor.values().end());
    if (name == kInputIds) values.back() = (values.back() + 1) % data.vocabulary_size();
    named.emplace(name, IndexTensor(Shape{2, tensor.numel()}, std::move(values)));
  }
  return named;
}

// Whether outputs [2, tokens, ...] differ before the last token by more than rounding.
bool differ_before_the_last(const Tensor& outputs, int64_t tokens) {
  const Tensor rows = outputs.to(Order::RowMajor);
  const size_t size = static_cast<size_t>(rows.numel() / 2),
               earlier = size / static_cast<size_t>(tokens) * static_cast<size_t>(tokens - 1);
  const std::span<const float> one(rows.data(), earlier), other(rows.data() + size, earlier);
  float largest = 0.0f, difference = 0.0f;
  for (size_t i = 0; i < earlier; ++i) {
    largest = std::max(largest, std::abs(one[i]));
    difference = std::max(difference, std::abs(one[i] - other[i]));
  }
  return difference > 1e-5f * largest;
}

}  // namespace

void require_causality(Sequential& model, const ModelLayers& layers, const Dataset& data) {
  if (data.token_label() != TokenLabel::Next || data.size() == 0) return;
  const int64_t tokens = data.example_shape()[0];
  if (tokens < 2 || data.vocabulary_size() < 2) return;
  const EvaluationMode mode(model);
  const NamedTensors named = two_endings(data);
  const NamedInputs names(named);
  Variable value = token_ids(named.find(kInputIds)->second);
  size_t place = 0;
  for (const auto& [name, layer] : model.children()) {
    value = (*layer)(value);
    const Shape& shape = value.shape();
    if (shape.rank() < 2 || shape[0] != 2 || shape[1] != tokens) return;
    if (differ_before_the_last(value.value(), tokens)) {
      layers.layers[place].node.error(fmt::format(
          "layer '{}' ({}) mixes tokens: outputs of a token depend on the tokens after it. The "
          "labels are the next tokens, so the model would read them: nothing would be learned. "
          "Leave the layer out, or let it see only the tokens before (as attention with causal: "
          "true does)",
          layer->path(), layer->type()));
    }
    ++place;
  }
}

}  // namespace lacuna
