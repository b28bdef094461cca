#include "lacuna/framework/interop/load_run.h"

#include <algorithm>
#include <cstddef>
#include <span>
#include <utility>
#include <vector>

#include "lacuna/framework/autograd/variable.h"
#include "lacuna/framework/core/error.h"
#include "lacuna/framework/data/added_channel.hpp"
#include "lacuna/framework/data/input_scale.hpp"
#include "lacuna/framework/inference/example_pieces.hpp"
#include "lacuna/framework/io/checkpoint.h"
#include "lacuna/framework/train/checks/ignored_labels.hpp"
#include "lacuna/framework/train/loss_function.h"
#include "lacuna/framework/train/parts/experiment.hpp"
#include "lacuna/framework/train/run_model.hpp"
#include "lacuna/framework/train/runs/run_folder.h"
#include "lacuna/framework/train/train_options.h"

namespace lacuna {
namespace {

constexpr int64_t kRunBatch = 256;

Shape batched(int64_t size, const Shape& example) {
  std::vector<int64_t> sizes{size};
  sizes.insert(sizes.end(), example.sizes().begin(), example.sizes().end());
  return Shape(std::span<const int64_t>(sizes));
}

bool has_averages(const Config& config, const StateDict& state) {
  const Config train = config.get("train");
  return train.is_map() && train.has("ema") && !state.below("ema").empty();
}

enum class Products { Float32, Int8 };

LoadedRun load(const std::string& run_or_checkpoint, KeptCheckpoint kept, Products products) {
  const CheckpointFile file = find_checkpoint(run_or_checkpoint, kept);
  const Checkpoint checkpoint = file.read();
  LoadedRun run{.checkpoint = file.path(),
                .step = checkpoint.step,
                .config = saved_config(checkpoint, file.path()),
                .inputs = {},
                .model = nullptr,
                .is_averaged = false};
  naming_file(file.path(), [&] {
    run.inputs = InputFormat::from_state(checkpoint.state.below("data"));
    const bool in_int8 = products == Products::Int8 && !checkpoint.state.below("quantized").empty();
    run.model = (in_int8 ? rebuild_model : restore_model)(run.config, checkpoint.state,
                                                          run.inputs.example_shape);
  });
  run.is_averaged = has_averages(run.config, checkpoint.state);
  return run;
}

}  // namespace

LoadedRun load_run(const std::string& run_or_checkpoint, KeptCheckpoint kept) {
  return load(run_or_checkpoint, kept, Products::Float32);
}

LoadedRun load_run_in_int8(const std::string& run_or_checkpoint, KeptCheckpoint kept) {
  return load(run_or_checkpoint, kept, Products::Int8);
}

Tensor LoadedRun::predict(const Examples& examples) const {
  ExampleView view{.shape = batched(examples.size(), examples.example_shape), .values = {}};
  std::visit([&](const auto& values) { view.values = values.data(); }, examples.inputs);
  return run(view);
}

Tensor LoadedRun::predict(const ExampleView& examples) const {
  return in_target_unit(run(examples), inputs);
}

Tensor LoadedRun::normalized(const ExampleView& examples) const {
  require_fitting(examples);
  return normalized(examples, 0, examples.shape[0]);
}

void LoadedRun::require_fitting(const ExampleView& examples) const {
  if (inputs.tokenizer != nullptr) {
    throw DataError("'" + checkpoint +
                    "' takes tokens, not arrays of examples: call its model with the token ids");
  }
  const bool has_batch = examples.shape.rank() > 0;
  const Shape found = with_channel_of(inputs.example_shape,
                                      has_batch ? examples.shape.without_batch() : examples.shape);
  if (has_batch && found == inputs.example_shape) return;
  throw DataError("the examples have shape " + found.to_string() +
                  ", and the model was trained on " + inputs.example_shape.to_string());
}

Tensor LoadedRun::normalized(const ExampleView& examples, int64_t begin, int64_t count) const {
  const bool is_bytes = examples.values.index() == 0;
  const InputScale scale(inputs.normalization, inputs.example_shape, is_bytes);
  const auto features = static_cast<size_t>(inputs.example_shape.numel());
  Tensor prepared = Tensor::empty(batched(count, inputs.example_shape));
  float* out = prepared.mutable_data();
  for (int64_t i = begin; i < begin + count; ++i) {
    const size_t offset = static_cast<size_t>(i) * features;
    if (is_bytes) {
      scale_bytes({std::get<0>(examples.values) + offset, features}, scale.scales, scale.offsets,
                  out);
    } else {
      scale_floats({std::get<1>(examples.values) + offset, features}, scale.means.data(),
                   scale.inverse_stds.data(), out);
    }
    out += features;
  }
  return prepared;
}

Tensor LoadedRun::run(const ExampleView& examples) const {
  require_fitting(examples);
  const NoGrad no_grad;
  const auto piece = [&](int64_t begin, int64_t count) {
    Batch batch;
    batch.inputs = normalized(examples, begin, count);
    batch.size = count;
    return run_model(*model, batch).value().to(Order::RowMajor);
  };
  const int64_t size = examples.shape[0];
  if (size == 1) return piece(0, 1);  // without looking for how many fit
  const int64_t at_a_time = example_pieces(*model, inputs.example_shape, kRunBatch).examples;
  Tensor outputs = Tensor::empty(batched(size, model->output_shape(inputs.example_shape)));
  float* into = outputs.mutable_data();
  for (int64_t begin = 0; begin < size; begin += at_a_time) {
    const Tensor rows = piece(begin, std::min(at_a_time, size - begin));
    into = std::copy_n(rows.data(), rows.numel(), into);
  }
  return outputs;
}

bool LoadedRun::has_classes() const {
  const LossKind kind = loss_kind(config);
  const int64_t outputs = model->output_shape(inputs.example_shape).features();
  return kind == LossKind::CrossEntropy ||
         (kind == LossKind::BinaryCrossEntropy && outputs == 1 && inputs.target_std.empty());
}

Evaluation LoadedRun::evaluate(Examples examples) const {
  examples.example_shape = with_channel_of(inputs.example_shape, examples.example_shape);
  if (examples.example_shape != inputs.example_shape) {
    throw DataError("the examples have shape " + examples.example_shape.to_string() +
                    ", and the model was trained on " + inputs.example_shape.to_string());
  }
  const Shape output = model->output_shape(inputs.example_shape);
  if (!examples.labels.empty() && examples.num_classes == 0) {
    const bool is_binary = loss_kind(config) == LossKind::BinaryCrossEntropy;
    examples.num_classes = is_binary ? 2 : output.features();
  }
  if (!examples.targets.empty() && examples.num_outputs == 0) {
    examples.num_outputs = output.features();
  }
  if (examples.num_outputs > 0 && !inputs.target_std.empty()) {
    for (size_t i = 0; i < examples.targets.size(); ++i) {
      const size_t j = i % inputs.target_std.size();
      examples.targets[i] =
          static_cast<float>((static_cast<double>(examples.targets[i]) - inputs.target_mean[j]) /
                             inputs.target_std[j]);
    }
  }
  std::shared_ptr<const Dataset> data =
      ArrayDataset(std::move(examples)).normalized(inputs.normalization);
  const Config own = config.clone();
  LossFunction loss = LossFunction::from_config(own, *data);
  loss.take_outputs(output);
  loss.set_target_scale(inputs.target_std);
  if (const auto label = loss.ignored_label()) {
    DataSplits splits;
    splits.train = splits.test = data;
    data = with_ignored_label(splits, *label).test;
  }
  const auto train = TrainOptions::from_config(own.get("train"));
  return lacuna::evaluate(*model, loss, *data, train.eval_batch_size);
}

}  // namespace lacuna
