// Calibration: the inputs of a model's layers, measured by running it on examples.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "lacuna/framework/config/config.h"
#include "lacuna/framework/core/convolution_shape.h"
#include "lacuna/framework/nn/module.h"
#include "lacuna/framework/param/parameter.h"
#include "lacuna/sparsity/one_shot/input_gram.h"

namespace lacuna {

/// Runs a model on calibration examples, batch by batch: the same examples each time it is called.
/// It must call the given module and must not use its outputs, because a forward pass ends as soon
/// as the measured layer has its input.
using CalibrationRun = std::function<void(Module& model)>;

/// The part of the data that is used for calibration.
struct CalibrationOptions {
  static constexpr int64_t kDefaultExamples = 512;

  /// At least 1; absent: those of `batches`, else kDefaultExamples, or all if there are fewer.
  std::optional<int64_t> examples = {};
  /// Instead of examples: as many as so many batches have.
  std::optional<int64_t> batches = {};
  /// Examples in a forward pass, at least 1; absent: as in training.
  std::optional<int64_t> batch_size = {};

  /// From a map with these keys, or a number of examples; null: the defaults. *Errors:*
  /// ConfigError; also if both `examples` and `batches` are given.
  static CalibrationOptions from_config(const Config& calibration);
  /// With a number of examples, where data has `there`, and a batch size, if one is given here or
  /// as that of training. The number may be larger than `there` if it was given. *Errors:*
  /// ConfigError if batches are given and no size of a batch is known.
  CalibrationOptions completed(int64_t there, std::optional<int64_t> training_batch_size) const;
};

/// "calibration needs 100 examples, and the training data has 90".
std::string calibration_needs(int64_t examples, int64_t there);

/// Data for calibration: the number of examples, and a function that runs a model on some of them.
struct CalibrationData {
  int64_t examples = 0;
  /// *Requires* that options.examples is set, and at most the number of examples.
  std::function<void(Module& model, const CalibrationOptions& options)> run;
  /// Of training, where `options.batches` is given without a batch size.
  std::optional<int64_t> batch_size = {};
};

/// A weight in the order of a forward pass.
struct CalibratedLayer {
  ParameterPtr weight;
  std::optional<ConvolutionShape> convolution = {};  ///< of its input; none of a linear product
  int64_t uses = 1;                                  ///< in one forward pass
  /// Whether it has the same input as the layer before it in the list, used in the same way.
  bool shares_input = false;
};

/// The weights in `weights` that the model multiplies by, in the order of their first use.
/// *Errors:* StateError if `run` does not run the model. *Cost:* one forward pass.
std::vector<CalibratedLayer> layers_in_order(Module& model, const CalibrationRun& run,
                                             const std::vector<ParameterPtr>& weights);

/// The inputs of a layer over all calibration examples, in evaluation mode and without recording: a
/// Gram matrix, or one per group for a grouped convolution. Inputs of convolutions are unfolded
/// with their padding, stride and dilation; in sentences, tokens that the batch's `attention_mask`
/// excludes do not count. *Errors:* those of the forward pass. *Cost:* forward passes up to the
/// layer, and InputGram's; memory for one batch's activations and the Gram.
std::vector<InputGram> collect_inputs(Module& model, const CalibrationRun& run,
                                      const CalibratedLayer& layer);

}  // namespace lacuna
