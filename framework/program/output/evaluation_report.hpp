// What eval and prune report of a model on the splits that are held out.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "lacuna/framework/config/config.h"
#include "lacuna/framework/data/load_data.h"
#include "lacuna/framework/nn/module.h"
#include "lacuna/framework/train/input_format.h"
#include "lacuna/framework/train/loss_function.h"

namespace lacuna {

/// New data is normalized as the training data was, unless it sets its own.
void keep_normalization(Config& config, const InputFormat& format);

/// Data without names has the classes that the model was trained on. *Errors:* DataError when both
/// have names that differ.
void require_same_classes(const std::vector<std::string>& data,
                          const std::vector<std::string>& model);

/// A map for each split that there is, validation before test, in commands.md's form:
/// with the confusion matrix where examples have one label each, and not too many classes.
Config evaluate_splits(Module& model, const LossFunction& loss, const DataSplits& data,
                       int64_t batch_size);

/// One of these on a line, up to where the parenthesis with its examples may go on: "test  loss
/// 0.35  accuracy 91.20 %  (10000 examples".
std::string describe_evaluation(const Config& entry);

}  // namespace lacuna
