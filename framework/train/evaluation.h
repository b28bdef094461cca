// Evaluating a model on a dataset.
#pragma once

#include "lacuna/framework/data/dataset.h"
#include "lacuna/framework/nn/module.h"
#include "lacuna/framework/train/loss_function.h"

namespace lacuna {

/// Means over a dataset. Accuracy is a fraction; NaN for regression.
struct Evaluation {
  double loss = 0.0;
  double accuracy = 0.0;
  int64_t examples = 0;
};

/// Runs the model in evaluation mode, without recording, over all examples; the mode is restored.
/// *Errors:* DataError when the dataset is empty.
Evaluation evaluate(Module& model, const LossFunction& loss, const Dataset& data,
                    int64_t batch_size);

}  // namespace lacuna
