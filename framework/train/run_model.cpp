#include "lacuna/framework/train/run_model.h"

#include <span>
#include <utility>
#include <vector>

#include "lacuna/framework/autograd/ops/token_ids.h"
#include "lacuna/framework/nn/named_inputs.h"

namespace lacuna {

Variable run_model(Module& model, const Batch& batch) {
  const NamedInputs names(batch.named);
  const auto ids = batch.named.find("input_ids");
  return model(ids == batch.named.end() ? Variable(batch.inputs) : token_ids(ids->second));
}

Variable run_for_loss(Module& model, const Batch& batch) {
  if (!batch.labels.defined() || batch.labels.shape().rank() < 2) return run_model(model, batch);
  const std::span<const int64_t> labels = batch.labels.values();
  std::vector<int64_t> places;
  for (size_t i = 0; i < labels.size(); ++i) {
    if (labels[i] != kIgnoredLabel) places.push_back(static_cast<int64_t>(i));
  }
  if (places.empty() || places.size() == labels.size()) return run_model(model, batch);
  Batch labelled = batch;
  const auto count = static_cast<int64_t>(places.size());
  labelled.named.emplace(kLabelledTokens, IndexTensor(Shape{count}, std::move(places)));
  return run_model(model, labelled);
}

}  // namespace lacuna
