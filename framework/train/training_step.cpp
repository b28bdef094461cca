#include "lacuna/framework/train/training_step.h"

#include <algorithm>
#include <cmath>

#include "lacuna/framework/autograd/engine.h"
#include "lacuna/framework/core/fault.h"
#include "lacuna/framework/train/run_model.h"

namespace lacuna {

TrainingSums& TrainingSums::operator+=(const TrainingSums& other) {
  loss += other.loss;
  correct += other.correct;
  examples += other.examples;
  answers += other.answers;
  return *this;
}

double TrainingSums::mean_loss() const {
  return examples == 0 ? 0.0 : loss / static_cast<double>(examples);
}

double TrainingSums::accuracy() const {
  return answers == 0 ? 0.0 : static_cast<double>(correct) / static_cast<double>(answers);
}

namespace {

// A teacher teaches all outputs.
Variable output_of(const Experiment& experiment, const Batch& batch) {
  return experiment.teacher == nullptr ? run_for_loss(*experiment.model, batch)
                                       : run_model(*experiment.model, batch);
}

Variable loss_of(const Experiment& experiment, const Variable& output, const Batch& batch) {
  if (experiment.teacher == nullptr) return experiment.loss(output, batch);
  Tensor taught;
  {
    const NoGrad no_grad;
    taught = run_model(*experiment.teacher, batch).value();
  }
  return experiment.loss(output, taught, batch);
}

}  // namespace

TrainingSums run_batches(Experiment& experiment) {
  Loader& loader = *experiment.loader;
  const TrainOptions& train = experiment.train;
  const int64_t first = loader.batch_in_epoch();
  const int64_t batches = std::min(train.accumulate, loader.batches_per_epoch() - first);
  const int64_t examples =
      std::min(batches * train.batch_size, loader.dataset().size() - first * train.batch_size);
  TrainingSums sums;
  for (int64_t i = 0; i < batches; ++i) {
    const Batch batch = loader.next();
    const Variable output = output_of(experiment, batch);
    const Variable loss = loss_of(experiment, output, batch);
    const auto mean = static_cast<double>(loss.value().item());
    sums.loss += mean * static_cast<double>(batch.size);
    sums.examples += batch.size;
    sums.answers += experiment.loss.answers_of(batch);
    if (!std::isfinite(mean)) return sums;
    if (experiment.loss.has_accuracy()) {
      sums.correct += experiment.loss.count_correct(output.value(), batch);
    }
    const double share = static_cast<double>(batch.size) / static_cast<double>(examples);
    backward(loss, Tensor::full(loss.shape(), static_cast<float>(share)));
    fault_point("step.after_backward");
  }
  return sums;
}

}  // namespace lacuna
