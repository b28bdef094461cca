#include "lacuna/framework/train/run_model.h"

#include "lacuna/framework/autograd/ops/token_ids.h"
#include "lacuna/framework/nn/named_inputs.h"

namespace lacuna {

namespace {

Variable input_of(const Batch& batch) {
  const auto ids = batch.named.find("input_ids");
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

}  // namespace lacuna
