// LossFunction: the function to minimize, and the answers that count as correct.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "lacuna/framework/autograd/ops/loss.h"
#include "lacuna/framework/autograd/variable.h"
#include "lacuna/framework/config/config.h"
#include "lacuna/framework/data/dataset.h"

namespace lacuna {

/// Learning from another model's outputs.
struct Distillation {
  std::string teacher;       ///< a run folder or a checkpoint
  double temperature = 2.0;  ///< above 0, at most 10⁶: both models' logits are divided by it
  double weight = 0.5;       ///< of the teacher against the labels, in [0, 1]
};

/// Divisors of the loss of some examples.
struct LossWeights {
  double labels = 0.0;  ///< of the loss by labels or targets (`LossFunction::weight_of`)
  double rows = 0.0;    ///< of the loss by a teacher: its rows, without padding

  LossWeights& operator+=(const LossWeights& other);
};

/// Losses of some examples, not yet divided: sums over several batches of `labels` by
/// `weights.labels` and of `teacher` by `weights.rows`.
struct LossSums {
  double labels = 0.0;   ///< by labels or targets
  double teacher = 0.0;  ///< by a teacher; 0 without one
  LossWeights weights = {};

  LossSums& operator+=(const LossSums& other);
  /// The loss of one batch of all these examples; 0 without examples.
  double mean() const;
};

/// One batch's part of a step's loss.
struct LossPart {
  Variable loss;  ///< a scalar, already divided by the step's weights
  LossSums sums;
};

/// MultiLabel: cross entropy for examples with any number of labels each.
enum class LossKind { CrossEntropy, BinaryCrossEntropy, MeanSquaredError, MultiLabel };

/// The kind of a resolved configuration's loss, where MultiLabel counts as CrossEntropy.
LossKind loss_kind(const Config& config);

/// Mean loss over a batch: cross entropy of class logits, of one label or several, binary cross
/// entropy of logits that are independent decisions, or the mean squared error. `LossFunction()` is
/// cross entropy without options; use it only with batches that have one label each.
class LossFunction {
 public:
  /// "cross_entropy", "binary_cross_entropy", "mse", or a map with `type` (and for cross_entropy
  /// `label_smoothing` in [0, 1), `class_weights`, one for each class, and `ignore_index`; for
  /// binary_cross_entropy `pos_weight`; see class_balance.hpp); "distillation" is cross_entropy
  /// with the keys of `Distillation` in addition. null → cross_entropy for data with classes, else
  /// mse. binary_cross_entropy takes regression's targets, from 0 to 1, or the labels of two
  /// classes, for one output. `data` are the training examples: weights may be measured on them.
  /// *Errors:* ConfigError on another name, or a loss that does not fit the data.
  static LossFunction from_config(const Config& parent, const Dataset& data);

  /// Mean loss of a batch. For mixtures, each loss is the weighted mean of the losses for both
  /// labels. *Shapes:* output [batch, …output_shape()], or [labels, outputs()] of the tokens that
  /// have a label (run_for_loss) → scalar.
  Variable operator()(const Variable& output, const Batch& batch) const;

  /// A batch's part of the loss over all batches of a step, with the weights `whole`: the parts of
  /// micro-batches and shards add up to the loss of one batch of all their examples. With a
  /// teacher, whose output is given (undefined without one), (1 − weight) times the loss, and
  /// `weight` times the distillation_loss. *Shapes:* as above. *Requires* distillation() with a
  /// teacher.
  LossPart part_of(const LossWeights& whole, const Variable& output, const Tensor& teacher,
                   const Batch& batch) const;
  /// The amount that a batch adds to the divisors of a step. *Requires* labels in range. *Cost:*
  /// one pass over the labels.
  LossWeights weights_of(const Batch& batch) const;
  /// Whether weights depend on labels; else they are the number of examples.
  bool weighs_labels() const {
    return has_token_labels() || depends_on_class() || has_label_lists();
  }
  const std::optional<Distillation>& distillation() const { return distillation_; }
  /// Whether the loss of an example depends on its class, which rules out mixtures.
  bool depends_on_class() const {
    return !cross_entropy_.class_weights.empty() || ignored_label_.has_value();
  }

  /// The ignored label (`ignore_index`): in batches for this function it is replaced by
  /// kIgnoredLabel (train/checks/ignored_labels.hpp).
  std::optional<int64_t> ignored_label() const { return ignored_label_; }

  /// The loss of evaluations: the same without label smoothing, so that losses and perplexities are
  /// those of the labels themselves.
  LossFunction for_evaluation() const;

  /// Accepts a model's output (of one example) with more values per token than the data has tokens,
  /// for example if vocab_size is rounded up: the other values are classes that no label has. Other
  /// shapes change nothing.
  void take_outputs(const Shape& output);

  /// The number of outputs: one for each class, decision or target.
  int64_t outputs() const { return outputs_; }
  /// The output shape of one example: [outputs()], or [length, outputs()] if each token has a
  /// label.
  const Shape& output_shape() const { return output_shape_; }
  /// Whether each token of an example has a label of its own, as in language modelling.
  bool has_token_labels() const { return output_shape_.rank() > 1; }
  /// "classes", "decisions" or "target values": the kind of outputs, for messages.
  const char* outputs_are() const;

  /// Whether the outputs are classes of which one is right.
  bool is_classification() const { return kind_ == Kind::CrossEntropy; }
  /// Whether answers are right or wrong, so that there is an accuracy.
  bool has_accuracy() const { return is_classification() || kind_ == Kind::BinaryCrossEntropy; }
  /// Whether examples have any number of labels each (`label_lists` of a batch), so that there are
  /// precisions of the largest outputs.
  bool has_label_lists() const { return kind_ == Kind::MultiLabel; }
  /// Whether the outputs are values that approximate targets.
  bool is_regression() const { return kind_ == Kind::MeanSquaredError; }
  /// The divisors of the targets (data.normalize_targets), one for each output, or none: errors are
  /// reported in the targets' original unit.
  const std::vector<double>& target_scale() const { return target_scale_; }
  void set_target_scale(std::vector<double> scale) { target_scale_ = std::move(scale); }
  /// Whether to report how often the label is among the five largest outputs: if there are more
  /// than five classes, and each example has one.
  bool has_top5() const { return is_classification() && outputs_ > 5 && !has_token_labels(); }
  /// The largest number of right or wrong answers per example: the number of decisions, or of
  /// tokens with labels, else 1.
  int64_t answers() const {
    if (has_token_labels()) return output_shape_[0];
    return kind_ == Kind::BinaryCrossEntropy ? outputs_ : 1;
  }
  /// The number of answers of a batch, without ignored labels.
  int64_t answers_of(const Batch& batch) const;
  /// Right answers in a batch. A decision is right if its logit is above 0 exactly if the target is
  /// above ½; for classes see `count_correct`. For mixtures, the example's own label, which has the
  /// larger share, is the right one.
  int64_t count_correct(const Tensor& output, const Batch& batch) const;

  /// Number of classes if each example has one as its label; 0 without labels.
  int64_t num_classes() const { return num_classes_; }
  /// The predicted class of each example. *Requires* num_classes() > 0.
  std::vector<int64_t> predicted_classes(const Tensor& output) const;

  /// The weight of a batch in a mean over several: the number of its examples, or of its tokens
  /// with a label, or the sum of their class weights. *Requires* labels in range, as after the loss
  /// was computed.
  double weight_of(const Batch& batch) const;

 private:
  using Kind = LossKind;

  void read_cross_entropy(const Config& config, const Dataset& data);
  void take_label_lists(const Config& config, const std::string& name);
  void read_distillation(const Config& config);
  void choose_outputs(const Config& config, const Dataset& data);

  Kind kind_ = Kind::CrossEntropy;
  CrossEntropyOptions cross_entropy_;
  std::vector<float> pos_weights_;  // of binary cross entropy, one for each output, or none
  std::optional<Distillation> distillation_;
  std::optional<int64_t> ignored_label_;
  int64_t outputs_ = 0;
  int64_t num_classes_ = 0;
  Shape output_shape_;
  std::vector<double> target_scale_;
};

/// The number of labels that equal the index of the row's largest logit (the first one, if several
/// are equal). A row with NaN never counts, nor does kIgnoredLabel. *Requires* other labels in [0,
/// classes). *Shapes:* logits [examples, …, classes], labels [examples, …].
int64_t count_correct(const Tensor& logits, const IndexTensor& labels);
/// The number of examples whose label's logit is among the `count` largest (of equal ones, the
/// first). A row with NaN never counts. *Requires* labels in [0, classes).
int64_t count_in_largest(const Tensor& logits, const IndexTensor& labels, int64_t count);
/// Index of the largest element of each row. *Shapes:* [n, classes] → n indices.
std::vector<int64_t> argmax_rows(const Tensor& logits);

}  // namespace lacuna
