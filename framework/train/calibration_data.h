// The examples that one-shot pruning of a run calibrates on.
#pragma once

#include <cstdint>
#include <memory>

#include "lacuna/framework/data/dataset.h"
#include "lacuna/sparsity/calibration/calibration.h"

namespace lacuna {

/// Runs models on the first examples of a dataset in an order drawn by the seed: a fixed choice, of
/// which a smaller number is a part, as they are without augmentation. `batch_size` is that of
/// options without one. *Cost:* memory for one batch, and O(examples) for the choice.
CalibrationData calibration_data(std::shared_ptr<const Dataset> data, uint64_t seed,
                                 int64_t batch_size);

}  // namespace lacuna
