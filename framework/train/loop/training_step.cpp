#include "lacuna/framework/train/loop/training_step.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <deque>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "lacuna/framework/autograd/engine.h"
#include "lacuna/framework/autograd/layer_span.hpp"
#include "lacuna/framework/core/fault.hpp"
#include "lacuna/framework/core/profile.hpp"
#include "lacuna/framework/io/log.h"
#include "lacuna/framework/kernels/pointwise/reorder.hpp"
#include "lacuna/framework/quantize/quantization_aware.hpp"
#include "lacuna/framework/train/run_model.hpp"
#include "lacuna/sparsity/one_shot_pruning.h"

namespace lacuna {

TrainingSums& TrainingSums::operator+=(const TrainingSums& other) {
  loss += other.loss;
  correct += other.correct;
  examples += other.examples;
  answers += other.answers;
  return *this;
}

double TrainingSums::accuracy() const {
  return answers == 0 ? 0.0 : static_cast<double>(correct) / static_cast<double>(answers);
}

namespace {

// What the teacher makes of a batch; undefined without one.
Tensor taught(const Experiment& experiment, const Batch& batch) {
  if (experiment.teacher == nullptr) return Tensor();
  const ProfileSpan span(Work::Teacher);
  const NoGrad no_grad;
  return run_model(*experiment.teacher, batch).value();
}

// A teacher teaches all outputs.
Variable output_of(const Experiment& experiment, const Batch& batch) {
  const ProfileSpan span(Work::Forward);
  return experiment.teacher == nullptr ? run_for_loss(*experiment.model, batch)
                                       : run_model(*experiment.model, batch);
}

// Running moments of batch normalization over each process's own examples are the first one's.
void share_buffers(Experiment& experiment) {
  Communicator* job = experiment.communicator();
  if (job == nullptr || experiment.train.batch_norm != NormBatch::Local) return;
  const ProfileSpan span(Work::Exchange);
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

LossPart loss_of(const LossFunction& loss, const LossWeights& whole, const Variable& output,
                 const Tensor& teachers, const Batch& batch) {
  const ProfileSpan span(Work::Forward);
  const LayerSpan layer(kLossLayer);
  return loss.part_of(whole, output, teachers, batch);
}

// Batches of one process, each as a whole.
struct PlainBatches {
  using Drawn = Batch;
  Experiment& experiment;

  Drawn draw() {
    const ProfileSpan span(Work::Data);
    return experiment.loader->next();
  }
  LossWeights weights_of(const Batch& batch) { return experiment.loss.weights_of(batch); }
  // Adds a batch to the sums; false if its loss ends the run.
  bool run(const Batch& batch, const LossWeights& whole, TrainingSums& sums) {
    const LossFunction& loss = experiment.loss;
    const Variable output = output_of(experiment, batch);
    const LossPart part = loss_of(loss, whole, output, taught(experiment, batch), batch);
    sums.loss += part.sums;
    sums.examples += batch.size;
    sums.answers += loss.answers_of(batch);
    if (!std::isfinite(part.sums.mean())) return false;
    if (loss.has_accuracy()) sums.correct += loss.count_correct(output.value(), batch);
    const ProfileSpan span(Work::Backward);
    backward(part.loss);
    return true;
  }
};

// Batches in shards, over all processes.
struct ShardedBatches {
  using Drawn = BatchShards;
  Experiment& experiment;

  Drawn draw() {
    const ProfileSpan span(Work::Data);
    return experiment.loader->next_shards();
  }

  LossWeights weights_of(const BatchShards& batch) {
    std::vector<ShardValues> own;
    for (const BatchShards::Shard& shard : batch.drawn) {
      const LossWeights weights = experiment.loss.weights_of(shard.batch);
      own.push_back({shard.index, {weights.labels, weights.rows}});
    }
    const ProfileSpan span(Work::Exchange);
    const std::vector<double> all = experiment.parallel->join(std::move(own), batch.shards);
    return {.labels = all[0], .rows = all[1]};
  }

  std::vector<Variable> shard_outputs(const BatchShards& batch) {
    const ProfileSpan span(Work::Forward);
    return run_model(*experiment.model, batch);
  }

  static std::vector<double> joined(DataParallel::Step& step, std::vector<ShardValues> own) {
    const ProfileSpan span(Work::Exchange);
    return step.join(std::move(own));
  }

  bool run(const BatchShards& batch, const LossWeights& whole, TrainingSums& sums) {
    const LossFunction& loss = experiment.loss;
    std::vector<BatchShard> shards;
    for (const BatchShards::Shard& shard : batch.drawn) {
      shards.push_back({shard.index, shard.examples, &shard.batch.named});
    }
    DataParallel::Step step(*experiment.parallel, shards, batch.shards);
    const std::vector<Variable> outputs = shard_outputs(batch);
    std::vector<Variable> losses;
    std::vector<ShardValues> own;
    for_each_shard([&](size_t i) {
      const Batch& shard = batch.drawn[i].batch;
      const LossPart part = loss_of(loss, whole, outputs[i], taught(experiment, shard), shard);
      losses.push_back(part.loss);
      const int64_t correct =
          loss.has_accuracy() ? loss.count_correct(outputs[i].value(), shard) : 0;
      own.push_back(
          {batch.drawn[i].index,
           {part.sums.labels, part.sums.weights.labels, part.sums.teacher, part.sums.weights.rows,
            static_cast<double>(correct), static_cast<double>(loss.answers_of(shard))}});
    });
    const std::vector<double> all = joined(step, std::move(own));
    const LossSums joined = {
        .labels = all[0], .teacher = all[2], .weights = {.labels = all[1], .rows = all[3]}};
    sums.loss += joined;
    sums.examples += batch.size;
    sums.answers += static_cast<int64_t>(all[5]);
    if (!std::isfinite(joined.mean())) return false;
    sums.correct += static_cast<int64_t>(all[4]);
    const std::vector<Tensor> ones(losses.size(), Tensor::full(Shape{}, 1.0f));
    {
      const ProfileSpan span(Work::Backward);
      backward(losses, ones);
    }
    {
      const ProfileSpan span(Work::Exchange);
      step.finish();
    }
    share_buffers(experiment);
    return true;
  }
};

// Draws `count` batches and runs them, each loss over the weights of all.
template <class Batches>
TrainingSums run_step(Batches batches, int64_t count, int64_t examples) {
  std::deque<typename Batches::Drawn> drawn;  // ahead of their passes
  LossWeights whole = {static_cast<double>(examples), static_cast<double>(examples)};
  if (batches.experiment.loss.weighs_labels()) {
    whole = {};
    for (int64_t i = 0; i < count; ++i) {
      drawn.push_back(batches.draw());
      whole += batches.weights_of(drawn.back());
    }
  }
  TrainingSums sums;
  for (int64_t i = 0; i < count; ++i) {
    if (static_cast<int64_t>(drawn.size()) < count - i) drawn.push_back(batches.draw());
    if (!batches.run(drawn.front(), whole, sums)) return sums;
    drawn.pop_front();
    fault_point("step.after_backward");
  }
  return sums;
}

}  // namespace

TrainingSums run_batches(Experiment& experiment) {
  const Loader& loader = *experiment.loader;
  const TrainOptions& train = experiment.train;
  const int64_t first = loader.batch_in_epoch();
  const int64_t count = std::min(train.accumulate, loader.batches_per_epoch() - first);
  const int64_t examples =
      std::min(count * train.batch_size, loader.dataset().size() - first * train.batch_size);
  if (experiment.quantization != nullptr) {
    // By the values in float32, which stay: the step itself computes with those of the grids.
    if (experiment.sparsity != nullptr) prune_waiting(*experiment.sparsity);
    experiment.quantization->begin_step(experiment.optimizer->steps());
  }
  const FakeWeights on_grids(experiment.quantization.get());
  if (experiment.parallel == nullptr) return run_step(PlainBatches{experiment}, count, examples);
  return run_step(ShardedBatches{experiment}, count, examples);
}

void step_optimizers(Experiment& experiment) {
  if (experiment.quantization != nullptr) experiment.quantization->step();
  experiment.optimizer->step();
  if (experiment.quantization == nullptr) return;
  const bool is_sparse = experiment.sparsity != nullptr;
  experiment.quantization->follow_masks(is_sparse ? experiment.sparsity->last_update()
                                                  : std::vector<MaskUpdate>());
}

TrainingSums run_traced_batches(Experiment& experiment) {
  ConversionCount backward;
  const ConversionCount before = conversions_so_far();
  const BackwardTrace tracing([&](const NodeRun& node) {
    log_info("backward  " + node.to_string());
    backward = backward + ConversionCount{node.conversions, node.converted_bytes};
  });
  const TrainingSums sums = run_batches(experiment);
  const ConversionCount forward = conversions_so_far() - before - backward;
  log_info(fmt::format("storage orders: {} conversions forward ({} bytes), {} backward ({} bytes)",
                       forward.conversions, forward.bytes, backward.conversions, backward.bytes));
  return sums;
}

}  // namespace lacuna
