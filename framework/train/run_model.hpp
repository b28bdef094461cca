// What a model makes of a batch.
#pragma once

#include <functional>
#include <vector>

#include "lacuna/framework/autograd/variable.h"
#include "lacuna/framework/data/dataset.h"
#include "lacuna/framework/data/loader.h"
#include "lacuna/framework/nn/module.h"

namespace lacuna {

/// Runs the model on the batch's inputs, or on its `input_ids` where it has those; its modules find
/// all of `batch.named` (`named_input`).
Variable run_model(Module& model, const Batch& batch);
/// The same for the shards of a batch, in their order. *Requires* a sharded batch of them
/// (nn/sharded_batch.h).
std::vector<Variable> run_model(Module& model, const BatchShards& batch);

/// The same for a loss: where some tokens have no label (kIgnoredLabel), a model may leave out
/// their outputs (layer `labelled_tokens`), so that there are [labels, classes] of them in place of
/// [batch, T, classes]; LossFunction takes both.
Variable run_for_loss(Module& model, const Batch& batch);
/// The same of some layers of a model, which begin with its input.
Variable run_for_loss(const std::function<Variable(const Variable& input)>& layers,
                      const Batch& batch);

}  // namespace lacuna
