#include "lacuna/framework/train/run_model.hpp"

#include <span>
#include <utility>
#include <vector>

#include "lacuna/framework/autograd/tokens/token_ids.h"
#include "lacuna/framework/nn/named_inputs.h"

namespace lacuna {

namespace {

Variable input_of(const Batch& batch) {
  const auto ids = batch.named.find(kInputIds);
  return ids == batch.named.end() ? Variable(batch.inputs) : token_ids(ids->second);
}

}  // namespace

Variable run_model(Module& model, const Batch& batch) {
  const NamedInputs names(batch.named);
  return model(input_of(batch));
}

std::vector<Variable> run_model(Module& model, const BatchShards& batch) {
  std::vector<Variable> inputs;
  for (const BatchShards::Shard& shard : batch.drawn) inputs.push_back(input_of(shard.batch));
  return model.forward_shards(inputs);
}

Variable run_for_loss(Module& model, const Batch& batch) {
  return run_for_loss([&](const Variable& input) { return model(input); }, batch);
}

Variable run_for_loss(const std::function<Variable(const Variable& input)>& layers,
                      const Batch& batch) {
  const auto run = [&](const NamedTensors& named) {
    const NamedInputs names(named);
    return layers(input_of(batch));
  };
  if (!batch.labels.defined() || batch.labels.shape().rank() < 2) return run(batch.named);
  const std::span<const int64_t> labels = batch.labels.values();
  std::vector<int64_t> places;
  for (size_t i = 0; i < labels.size(); ++i) {
    if (labels[i] != kIgnoredLabel) places.push_back(static_cast<int64_t>(i));
  }
  if (places.empty() || places.size() == labels.size()) return run(batch.named);
  NamedTensors named = batch.named;
  const auto count = static_cast<int64_t>(places.size());
  named.emplace(kLabelledTokens, IndexTensor(Shape{count}, std::move(places)));
  return run(named);
}

}  // namespace lacuna
