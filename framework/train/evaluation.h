// Evaluating a model on a dataset.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "lacuna/framework/data/dataset.h"
#include "lacuna/framework/distributed/communicator.h"
#include "lacuna/framework/nn/module.h"
#include "lacuna/framework/train/loss_function.h"

namespace lacuna {

/// Means over a dataset: the loss over its examples (weighted if there are class weights), and
/// fractions of correct answers, which are NaN if answers are not right or wrong.
struct Evaluation {
  double loss = 0.0;
  double accuracy = 0.0;  ///< NaN for regression
  int64_t examples = 0;
  /// Fraction of examples whose label is among the five largest outputs; NaN with at most five
  /// classes, and if each token has a label.
  double top5_accuracy = std::numeric_limits<double>::quiet_NaN();
  /// e^loss, if each token has a label; else NaN.
  double perplexity = std::numeric_limits<double>::quiet_NaN();
  /// For regression, in the targets' original unit: 1 − (squared errors) / (squared distances from
  /// the mean), its mean over the outputs; the mean of |error|; the root of the mean squared error.
  /// NaN otherwise; r2 is also NaN if all targets of an output are equal.
  double r2 = std::numeric_limits<double>::quiet_NaN();
  double mae = std::numeric_limits<double>::quiet_NaN();
  double rmse = std::numeric_limits<double>::quiet_NaN();
  /// See lacuna::bits_per_character.
  double bits_per_character = std::numeric_limits<double>::quiet_NaN();
  /// Reported with bits_per_character: Dataset::unknown_labels.
  double unknown_tokens = std::numeric_limits<double>::quiet_NaN();
  /// If examples have several labels: the share of the 1, 3 and 5 largest outputs that are labels,
  /// averaged over all examples, including those without a label. Else NaN.
  std::array<double, 3> precisions = {std::numeric_limits<double>::quiet_NaN(),
                                      std::numeric_limits<double>::quiet_NaN(),
                                      std::numeric_limits<double>::quiet_NaN()};
};

/// The precisions of an Evaluation: their names, and how many outputs count.
struct PrecisionAt {
  const char* name;
  int64_t count;
};
inline constexpr std::array<PrecisionAt, 3> kPrecisions = {
    {{"precision_at_1", 1}, {"precision_at_3", 3}, {"precision_at_5", 5}}};

/// "r2", "mae", "rmse" and the names of `kPrecisions`, with their values, if they are not NaN.
std::vector<std::pair<std::string, double>> other_results(const Evaluation& result);
/// "P@1 31.5 %  P@3 25.1 %  P@5 20.4 %"; empty if there are none.
std::string precisions_in_words(const Evaluation& result);

/// The loss of text per character in bits: loss / ln 2 / characters per label
/// (Dataset::characters_per_label); NaN if that is unknown.
double bits_per_character(double loss, const Dataset& data);
/// "1.98 bits per character, 4.2 % of the tokens [UNK]"; the second part only if it is above 0.
std::string bits_in_words(double bits, double unknown_tokens);

/// Receives examples and the model's outputs for them.
using BatchWatcher = std::function<void(const Tensor& output, const Batch& batch)>;

/// Runs the model in evaluation mode, without recording, over all examples; the mode is restored.
/// The loss is that of the labels themselves, without smoothing (LossFunction::for_evaluation).
/// Batches are run in pieces (`example_pieces`), and the sums are over examples, so both depend on
/// the batch size only in the last digits. If the last layer runs in pieces on its own, hooks of
/// the whole model are not called. `job`: the processes that share the batches; all must call, and
/// all get the same result, because counts are added batch after batch, as in one process.
/// *Errors:* StateError unless batch_size ≥ 1; DataError when the dataset is empty; Error with the
/// memory of a piece, and the key that reduces it, if there is not enough.
Evaluation evaluate(Module& model, const LossFunction& loss, const Dataset& data,
                    int64_t batch_size, const BatchWatcher& watcher = nullptr,
                    Communicator* job = nullptr);

/// Refuses an evaluation with this batch size if the machine's memory cannot be enough. *Errors:*
/// as `evaluate`, if a piece certainly takes more than all of it.
void require_evaluation_fits(Module& model, const Dataset& data, int64_t batch_size);

/// Evaluates one piece, of the longest examples, as `evaluate` with this batch size would, to find
/// out at once whether there is memory for it. Changes nothing: if activations are sparsified,
/// which may draw random numbers, it does nothing. *Errors:* as `evaluate`.
void try_evaluation(Module& model, const LossFunction& loss, const Dataset& data,
                    int64_t batch_size);

}  // namespace lacuna
