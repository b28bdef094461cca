// What `quantize` and a `prune` that quantizes have in common.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "lacuna/framework/config/config.h"
#include "lacuna/framework/config/state_dict.h"
#include "lacuna/framework/data/load_data.h"
#include "lacuna/framework/nn/module.h"
#include "lacuna/framework/quantize/quantize_model.hpp"
#include "lacuna/framework/train/loss_function.h"
#include "lacuna/framework/train/train_options.h"

namespace lacuna {

/// Runs models on the examples that a section `quantize` asks for; null where it needs none.
/// *Errors:* ConfigError at the section where there are too few.
CalibrationRun quantize_calibration(const Config& section, const QuantizeOptions& options,
                                    std::shared_ptr<const Dataset> data, const TrainOptions& train);

/// Keeps what a quantized model is made of: the model, its averages, inputs and origins, and
/// "quantized". What only training needs goes.
void keep_model_state(StateDict& state);

/// Puts the state of a model into that of a checkpoint, in the place of what is there of it and of
/// its averages.
void replace_model_state(StateDict& state, StateDict model);

/// Examples that each model takes in a second, by its quickest batch of up to 256 that is run as an
/// evaluation runs it. Models take turns, for a third of a second each or 200 batches.
std::vector<double> measure_rates(std::span<Module* const> models, const Dataset& data);

/// An evaluation of a model with `bytes` and `examples_per_second` (precision_result).
Config measured_precision(Module& model, const LossFunction& loss, const DataSplits& data,
                          const TrainOptions& train);

/// What quantize.json holds of a quantized model, without `checkpoint` and `step`. `float32` and
/// `int8`: evaluations (precision_result).
Config quantize_report(Module& model, const QuantizeOptions& options,
                       const QuantizedModel& quantized, const Config& products,
                       const Config& float32, const Config& int8);

/// The same as tables.
std::string quantize_report_text(const Config& report);

}  // namespace lacuna
