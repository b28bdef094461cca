#include "lacuna/framework/train/training_step.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <span>
#include <string>
#include <utility>
#include <vector>

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

// What the teacher makes of a batch; undefined without one.
Tensor taught(const Experiment& experiment, const Batch& batch) {
  if (experiment.teacher == nullptr) return Tensor();
  const NoGrad no_grad;
  return run_model(*experiment.teacher, batch).value();
}

// A teacher teaches all outputs.
Variable output_of(const Experiment& experiment, const Batch& batch) {
  return experiment.teacher == nullptr ? run_for_loss(*experiment.model, batch)
                                       : run_model(*experiment.model, batch);
}

Variable loss_of(const Experiment& experiment, const Variable& output, const Batch& batch) {
  if (experiment.teacher == nullptr) return experiment.loss(output, batch);
  return experiment.loss(output, taught(experiment, batch), batch);
}

// Adds a batch to the sums; false where its loss ends the run.
bool run_batch(Experiment& experiment, double examples, TrainingSums& sums) {
  const Batch batch = experiment.loader->next();
  const Variable output = output_of(experiment, batch);
  const Variable loss = loss_of(experiment, output, batch);
  const auto mean = static_cast<double>(loss.value().item());
  sums.loss += mean * static_cast<double>(batch.size);
  sums.examples += batch.size;
  sums.answers += experiment.loss.answers_of(batch);
  if (!std::isfinite(mean)) return false;
  if (experiment.loss.has_accuracy()) {
    sums.correct += experiment.loss.count_correct(output.value(), batch);
  }
  const double share = static_cast<double>(batch.size) / examples;
  backward(loss, Tensor::full(loss.shape(), static_cast<float>(share)));
  return true;
}

// What the losses of the batch's shards are divided by: known without asking, unless tokens or
// weights of classes count, or some labels do not.
LossFunction::WholeBatch whole_batch(const LossFunction& loss, const BatchShards& batch,
                                     const std::vector<Variable>& outputs,
                                     const DataParallel::Step& step) {
  if (!loss.labels_tokens() && !loss.hangs_on_class()) {
    return {static_cast<double>(batch.size), static_cast<double>(batch.size)};
  }
  std::vector<ShardValues> own;
  for (size_t i = 0; i < batch.drawn.size(); ++i) {
    own.push_back(
        {batch.drawn[i].index,
         {loss.weight_of(batch.drawn[i].batch), static_cast<double>(outputs[i].shape().batch())}});
  }
  const std::vector<double> whole = step.join(std::move(own));
  return {whole[0], whole[1]};
}

// Running moments of batch normalization over each process's own examples are the first one's.
void share_buffers(Experiment& experiment) {
  Communicator* job = experiment.communicator();
  if (job == nullptr || experiment.train.batch_norm != NormBatch::Local) return;
  std::string bytes;
  for (const auto& [name, buffer] : experiment.model->buffers()) {
    const std::span<const float> values = std::as_const(*buffer).storage();
    bytes.append(reinterpret_cast<const char*>(values.data()), values.size_bytes());
  }
  bytes = job->from_first(bytes);
  size_t at = 0;
  for (const auto& [name, buffer] : experiment.model->buffers()) {
    const std::span<float> values = buffer->mutable_storage();
    std::memcpy(values.data(), bytes.data() + at, values.size_bytes());
    at += values.size_bytes();
  }
}

// The same by shards, over all processes.
bool run_shards(Experiment& experiment, double examples, TrainingSums& sums) {
  const LossFunction& loss = experiment.loss;
  const BatchShards batch = experiment.loader->next_shards();
  std::vector<BatchShard> shards;
  for (const BatchShards::Shard& shard : batch.drawn) {
    shards.push_back({shard.index, shard.examples, &shard.batch.named});
  }
  DataParallel::Step step(*experiment.parallel, shards, batch.shards);
  const std::vector<Variable> outputs = run_model(*experiment.model, batch);
  const LossFunction::WholeBatch whole = whole_batch(loss, batch, outputs, step);
  std::vector<Variable> losses;
  std::vector<ShardValues> own;
  for_each_shard([&](size_t i) {
    const Batch& shard = batch.drawn[i].batch;
    losses.push_back(loss.part_of(whole, outputs[i], taught(experiment, shard), shard));
    const int64_t correct = loss.has_accuracy() ? loss.count_correct(outputs[i].value(), shard) : 0;
    own.push_back({batch.drawn[i].index,
                   {static_cast<double>(losses[i].value().item()), static_cast<double>(correct),
                    static_cast<double>(loss.answers_of(shard))}});
  });
  const std::vector<double> all = step.join(std::move(own));
  sums.loss += all[0] * static_cast<double>(batch.size);
  sums.examples += batch.size;
  sums.answers += static_cast<int64_t>(all[2]);
  if (!std::isfinite(all[0])) return false;
  sums.correct += static_cast<int64_t>(all[1]);
  const auto share = static_cast<float>(static_cast<double>(batch.size) / examples);
  const std::vector<Tensor> ones(losses.size(), Tensor::full(Shape{}, share));
  backward(losses, ones);
  step.finish();
  share_buffers(experiment);
  return true;
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
  const auto run = experiment.parallel == nullptr ? run_batch : run_shards;
  for (int64_t i = 0; i < batches; ++i) {
    if (!run(experiment, static_cast<double>(examples), sums)) return sums;
    fault_point("step.after_backward");
  }
  return sums;
}

}  // namespace lacuna
