#include "lacuna/framework/train/evaluation.h"

#include <cmath>
#include <numbers>

#include "lacuna/framework/core/error.h"
#include "lacuna/framework/data/loader.h"
#include "lacuna/framework/train/run_model.h"

namespace lacuna {
namespace {

class EvaluationMode {
 public:
  explicit EvaluationMode(Module& model) : model_(model), was_training_(model.training()) {
    model_.eval();
  }
  ~EvaluationMode() {
    if (was_training_) model_.train();
  }
  EvaluationMode(const EvaluationMode&) = delete;
  EvaluationMode& operator=(const EvaluationMode&) = delete;

 private:
  Module& model_;
  bool was_training_;
  NoGrad no_grad_;
};

}  // namespace

double bits_per_character(double loss, const Dataset& data) {
  const double characters = data.characters_per_label();
  if (!(characters > 0.0)) return std::numeric_limits<double>::quiet_NaN();
  return loss / std::numbers::ln2 / characters;
}

Evaluation evaluate(Module& model, const LossFunction& loss, const Dataset& data,
                    int64_t batch_size, const BatchWatcher& watcher) {
  if (data.size() == 0) throw DataError("there are no examples to evaluate on");
  const EvaluationMode mode(model);
  Evaluation result;
  double loss_sum = 0.0, weight_sum = 0.0;
  int64_t correct = 0, in_largest = 0, answers = 0;
  for_each_batch(data, batch_size, [&](const Batch& batch) {
    const Variable output = run_model(model, batch);
    const auto mean = static_cast<double>(loss(output, batch).value().item());
    const double weight = loss.weight_of(batch);
    loss_sum += mean * weight;
    weight_sum += weight;
    if (loss.has_accuracy()) correct += loss.count_correct(output.value(), batch);
    if (loss.has_top5()) in_largest += count_in_largest(output.value(), batch.labels, 5);
    result.examples += batch.size;
    answers += loss.answers_of(batch);
    if (watcher) watcher(output.value(), batch);
  });
  constexpr double kNone = std::numeric_limits<double>::quiet_NaN();
  const auto examples = static_cast<double>(result.examples);
  result.loss = weight_sum > 0.0 ? loss_sum / weight_sum : 0.0;
  if (loss.has_accuracy()) {
    result.accuracy =
        answers > 0 ? static_cast<double>(correct) / static_cast<double>(answers) : 0.0;
  } else {
    result.accuracy = kNone;
  }
  if (loss.labels_tokens()) result.perplexity = std::exp(result.loss);
  result.bits_per_character = bits_per_character(result.loss, data);
  result.top5_accuracy = loss.has_top5() ? static_cast<double>(in_largest) / examples : kNone;
  return result;
}

}  // namespace lacuna
