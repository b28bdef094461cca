#include "lacuna/framework/train/evaluation.h"

#include <limits>

#include "lacuna/framework/core/error.h"
#include "lacuna/framework/data/loader.h"

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

Evaluation evaluate(Module& model, const LossFunction& loss, const Dataset& data,
                    int64_t batch_size) {
  if (data.size() == 0) throw DataError("there are no examples to evaluate on");
  const EvaluationMode mode(model);
  Evaluation result;
  double loss_sum = 0.0;
  int64_t correct = 0;
  for_each_batch(data, batch_size, [&](const Batch& batch) {
    const Variable output = model(Variable(batch.inputs));
    loss_sum +=
        static_cast<double>(loss(output, batch).value().item()) * static_cast<double>(batch.size);
    if (loss.is_classification()) correct += count_correct(output.value(), batch.labels);
    result.examples += batch.size;
  });
  result.loss = loss_sum / static_cast<double>(result.examples);
  result.accuracy = loss.is_classification()
                        ? static_cast<double>(correct) / static_cast<double>(result.examples)
                        : std::numeric_limits<double>::quiet_NaN();
  return result;
}

}  // namespace lacuna
