#include "lacuna/framework/train/run_model.h"

#include "lacuna/framework/autograd/ops/token_ids.h"
#include "lacuna/framework/nn/named_inputs.h"

namespace lacuna {

Variable run_model(Module& model, const Batch& batch) {
  const NamedInputs names(batch.named);
  const auto ids = batch.named.find("input_ids");
  return model(ids == batch.named.end() ? Variable(batch.inputs) : token_ids(ids->second));
}

}  // namespace lacuna
