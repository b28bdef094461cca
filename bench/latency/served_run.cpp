#include "latency/served_run.h"

#include "common/operands.h"
#include "lacuna/framework/core/error.h"
#include "lacuna/framework/core/random.h"
#include "lacuna/framework/inference/fold_batch_norm.hpp"
#include "lacuna/framework/io/checkpoint.h"

namespace lacuna::bench {

ServedRun::ServedRun(const std::string& folder) : folder_(folder), float32_(load_run(folder)) {
  const std::string data = float32_.config.at("data").at("type").text();
  const bool has_vocabulary = float32_.inputs.tokenizer != nullptr;
  if (data == "labelled_sparse" || (data == "tokens" && !has_vocabulary)) {
    throw ConfigError("--run " + folder + ": inputs of data type '" + data +
                      "' without a vocabulary are not drawn; measure another run");
  }
  fold_batch_norm(*float32_.model, float32_.inputs.example_shape);
  const Checkpoint checkpoint = CheckpointFile(float32_.checkpoint).read();
  if (!checkpoint.state.below("quantized").empty()) int8_ = load_run_in_int8(folder);
}

double ServedRun::sparsity() const {
  int64_t numel = 0, nnz = 0;
  for (const ParameterPtr& parameter : float32_.model->parameters()) {
    if (parameter->pattern()->is_dense()) continue;
    numel += parameter->numel();
    nnz += parameter->pattern()->nnz();
  }
  return numel == 0 ? 0.0 : 1.0 - static_cast<double>(nnz) / static_cast<double>(numel);
}

Batch ServedRun::draw(int64_t examples) const {
  Batch batch;
  batch.size = examples;
  const Shape& example = float32_.inputs.example_shape;
  if (float32_.inputs.tokenizer == nullptr) {
    std::vector<int64_t> sizes = {examples};
    for (const int64_t size : example.sizes()) sizes.push_back(size);
    batch.inputs = random_tensor(Shape(sizes), "x");
    return batch;
  }
  const int64_t count = examples * example.numel();
  const auto bound = static_cast<uint64_t>(float32_.inputs.tokenizer->vocabulary_size());
  const CounterRng rng(0, "tokens");
  std::vector<int64_t> ids;
  for (int64_t i = 0; i < count; ++i) {
    ids.push_back(static_cast<int64_t>(rng.below(static_cast<uint64_t>(i), bound)));
  }
  const Shape shape{examples, example.numel()};
  batch.named.emplace("input_ids", IndexTensor(shape, std::move(ids)));
  return batch;
}

std::vector<ServedRun::Precision> ServedRun::precisions() const {
  std::vector<Precision> all = {{"float32", float32_.model.get()}};
  if (int8_.model != nullptr) all.push_back({"int8", int8_.model.get()});
  return all;
}

}  // namespace lacuna::bench
