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

/// Means over a dataset: the loss over its examples (weighted where there are class weights), and
/// fractions of right answers; NaN where there are none.
struct Evaluation {
  double loss = 0.0;
  double accuracy = 0.0;  ///< NaN for regression
  int64_t examples = 0;
  /// Of examples whose label is among the five largest outputs; NaN with five classes or less.
  double top5_accuracy = std::numeric_limits<double>::quiet_NaN();
  /// e^loss, where each token has a label; else NaN.
  double perplexity = std::numeric_limits<double>::quiet_NaN();
  /// Of regression, in the targets' own unit where they were scaled: 1 − (squared errors) /
  /// (squared distances from the mean), its mean over the outputs; the mean of |error|; the root of
  /// the mean squared error. NaN otherwise, and r2 where all targets of an output are the same.
  double r2 = std::numeric_limits<double>::quiet_NaN();
  double mae = std::numeric_limits<double>::quiet_NaN();
  double rmse = std::numeric_limits<double>::quiet_NaN();
  /// See lacuna::bits_per_character.
  double bits_per_character = std::numeric_limits<double>::quiet_NaN();
  /// Next to these, as Dataset::unknown_labels.
  double unknown_tokens = std::numeric_limits<double>::quiet_NaN();
  /// Where examples have several labels: the mean over all of them, those without a label too, of
  /// the share of the 1, 3 and 5 largest outputs that are labels. Else NaN.
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

/// "r2", "mae", "rmse" and the names of `kPrecisions` with their values, those that there are.
std::vector<std::pair<std::string, double>> other_results(const Evaluation& result);
/// "P@1 31.5 %  P@3 25.1 %  P@5 20.4 %"; empty where there are none.
std::string precisions_in_words(const Evaluation& result);

/// The loss of text by the character and to the base of 2: loss / ln 2 / the characters that a
/// label stands for (Dataset::characters_per_label); NaN where that is not known.
double bits_per_character(double loss, const Dataset& data);
/// "1.98 bits a character, 4.2 % of the tokens [UNK]"; the second if it is above 0.
std::string bits_in_words(double bits, double unknown_tokens);

/// Is shown examples, and what the model made of them.
using BatchWatcher = std::function<void(const Tensor& output, const Batch& batch)>;

/// Runs the model in evaluation mode, without recording, over all examples; the mode is restored.
/// The loss is that of the labels themselves, without smoothing (LossFunction::for_evaluation).
/// Batches are run in pieces (`example_pieces`), and the sums are over examples, so that neither
/// depends on the batch size but in the last digits. Where the last layer runs in pieces by itself,
/// hooks of the model itself are not called. `job`: the processes that share the batches, all of
/// which must call, and get the same; what they count is added up batch after batch, as one process
/// does. *Errors:* DataError when the dataset is empty; Error with what a piece takes, and
/// the key that asks for less, if there is no memory for it.
Evaluation evaluate(Module& model, const LossFunction& loss, const Dataset& data,
                    int64_t batch_size, const BatchWatcher& watcher = nullptr,
                    Communicator* job = nullptr);

/// Refuses an evaluation with this batch size for which the machine's memory cannot be enough.
/// *Errors:* as `evaluate`, where a piece surely takes more than all of it.
void require_evaluation_fits(Module& model, const Dataset& data, int64_t batch_size);

/// Evaluates one piece, of the longest examples, as `evaluate` with this batch size would, so that
/// it is known at once whether there is memory for it. Nothing changes: where activations are
/// sparsified, which may draw at random, it does nothing. *Errors:* as `evaluate`.
void try_evaluation(Module& model, const LossFunction& loss, const Dataset& data,
                    int64_t batch_size);

}  // namespace lacuna
