#include "lacuna/framework/interop/load_run.h"

#include <algorithm>
#include <vector>

#include "lacuna/framework/autograd/variable.h"
#include "lacuna/framework/core/error.h"
#include "lacuna/framework/data/loader.h"
#include "lacuna/framework/inference/example_pieces.hpp"
#include "lacuna/framework/io/checkpoint.h"
#include "lacuna/framework/train/parts/experiment.hpp"
#include "lacuna/framework/train/run_model.hpp"
#include "lacuna/framework/train/runs/run_folder.h"

namespace lacuna {
namespace {

constexpr int64_t kBatch = 256;

bool has_averages(const Config& config, const StateDict& state) {
  const Config train = config.get("train");
  return train.is_map() && train.has("ema") && !state.below("ema").empty();
}

}  // namespace

LoadedRun load_run(const std::string& run_or_checkpoint, KeptCheckpoint kept) {
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
    run.model = restore_model(run.config, checkpoint.state, run.inputs.example_shape);
  });
  run.is_averaged = has_averages(run.config, checkpoint.state);
  return run;
}

Tensor LoadedRun::predict(const Examples& examples) const {
  if (inputs.tokenizer != nullptr) {
    throw DataError("'" + checkpoint +
                    "' takes tokens: give run_model a batch with `input_ids` instead");
  }
  if (examples.example_shape != inputs.example_shape) {
    throw DataError("the examples have shape " + examples.example_shape.to_string() +
                    ", and the model was trained on " + inputs.example_shape.to_string());
  }
  Examples copy = examples;  // without labels: there are none to be checked
  copy.labels.clear();
  copy.num_classes = 0;
  const auto dataset = ArrayDataset(std::move(copy)).normalized(inputs.normalization);
  const Shape output = model->output_shape(inputs.example_shape);
  std::vector<int64_t> sizes{dataset->size()};
  sizes.insert(sizes.end(), output.sizes().begin(), output.sizes().end());
  Tensor outputs = Tensor::empty(Shape(std::span<const int64_t>(sizes)));
  float* into = outputs.mutable_data();
  const int64_t at_a_time = example_pieces(*model, inputs.example_shape, kBatch).examples;
  const NoGrad no_grad;
  for_each_batch(*dataset, at_a_time, [&](const Batch& batch) {
    const Tensor rows = run_model(*model, batch).value().to(Order::RowMajor);
    into = std::copy_n(rows.data(), rows.numel(), into);
  });
  return outputs;
}

}  // namespace lacuna
