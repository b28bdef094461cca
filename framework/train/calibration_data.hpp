// The examples that one-shot pruning of a run calibrates on.
#pragma once

#include <cstdint>
#include <memory>

#include "lacuna/framework/config/config.h"
#include "lacuna/framework/data/dataset.h"
#include "lacuna/sparsity/calibration/calibration.h"

namespace lacuna {

/// Runs models on the first examples of a dataset in an order drawn by the seed: a fixed choice, of
/// which a smaller number is a part, as they are without augmentation. `batch_size` is that of
/// options without one. *Cost:* memory for one batch, and O(examples) for the choice.
CalibrationData calibration_data(std::shared_ptr<const Dataset> data, uint64_t seed,
                                 int64_t batch_size);

/// Writes into a `sparsity` section what algorithms calibrate on, if it does not state it:
/// `calibration: {examples: 512, batch_size: 32}`, or all examples where there are fewer. What is
/// wrong with the section is left as it is, for whoever makes algorithms of it.
void write_calibration_defaults(const Config& sparsity, const Dataset& data, int64_t batch_size);

/// For a `sparsity` section that algorithms were made of. *Errors:* ConfigError at the key of an
/// entry that asks for more calibration examples than there are.
void require_calibration_examples(const Config& sparsity, const Dataset& data, int64_t batch_size);

}  // namespace lacuna
