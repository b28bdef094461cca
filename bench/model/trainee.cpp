#include "model/trainee.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "common/clock.h"
#include "common/operands.h"
#include "common/operations.h"
#include "lacuna/framework/autograd/engine.h"
#include "lacuna/framework/autograd/ops/loss.h"
#include "lacuna/framework/core/error.h"
#include "lacuna/framework/inference/fold_batch_norm.hpp"
#include "lacuna/sparsity/configure.h"
#include "model/stored_as.h"

namespace lacuna::bench {
namespace {

std::unique_ptr<SparsityAlgorithm> make_static(const Storage& storage, int64_t batch,
                                               const std::vector<ParameterPtr>& weights) {
  std::vector<std::string> names;
  for (const ParameterPtr& weight : weights) names.push_back(weight->name());
  auto algorithm = configure(Config::map({{"algorithm", "static"},
                                          {"sparsity", storage.sparsity},
                                          {"layout", storage.layout},
                                          {"param_filter", Config::from_value(names)}}),
                             0);
  algorithm->compression().batch = batch;
  return algorithm;
}

}  // namespace

ImageNetwork::ImageNetwork(const Network& network, int64_t examples, const Storage& storage)
    : model_(network.build()),
      images_(random_tensor(Shape{examples, 3, network.size, network.size}, "images")),
      profile_(*model_, images_.shape().without_batch(), examples) {
  sparse_weights_ = sparse_weights(*model_, network);
  if (storage.layout == "dense") return;
  algorithm_ = make_static(storage, network.batch, sparse_weights_);
  model_->apply(*algorithm_);
}

void ImageNetwork::require_stored(const Storage& storage) const {
  if (storage.layout == "dense" || storage.layout == "auto" || stored() == storage.layout) return;
  throw StateError("layout '" + storage.layout + "' was asked for, '" + stored() + "' is stored");
}

ImageTrainee::ImageTrainee(const Network& network, int64_t examples, const Storage& storage)
    : ImageNetwork(network, examples, storage),
      optimizer_(std::make_unique<Sgd>(
          model_->parameters(), SgdOptions{.lr = 0.01, .momentum = 0.9, .weight_decay = 1e-4})) {
  std::vector<int64_t> labels;
  for (int64_t i = 0; i < examples; ++i) labels.push_back(i * 7919 % network.classes);
  labels_ = IndexTensor(Shape{examples}, std::move(labels));
  if (algorithm_ != nullptr) optimizer_->apply(*algorithm_);
  require_stored(storage);
}

float ImageTrainee::result() {
  const PassProfile::Pass pass(profile_);
  Clock::time_point start = Clock::now();
  const Variable loss = cross_entropy((*model_)(Variable(images_)), labels_);
  profile_.add("forward", seconds_since(start));
  backward(loss);
  start = Clock::now();
  optimizer_->step();
  optimizer_->zero_grad();
  profile_.add("optimizer", seconds_since(start));
  return loss.value().item();
}

ImagePredictor::ImagePredictor(const Network& network, int64_t examples, const Storage& storage)
    : ImageNetwork(network, examples, storage) {
  require_stored(storage);
  model_->eval();
  fold_batch_norm(*model_, images_.shape().without_batch());
}

void ImagePredictor::run() {
  const NoGrad no_grad;
  const PassProfile::Pass pass(profile_);
  const Clock::time_point start = Clock::now();
  outputs_ = (*model_)(Variable(images_)).value();
  profile_.add("forward", seconds_since(start));
}

float ImagePredictor::result() {
  run();
  float sum = 0.0f;
  for (const float output : outputs_.to_vector()) sum += std::abs(output);
  return sum;
}

double ImageNetwork::operations(bool is_training) const {
  return operations_of(*model_, images_.shape().without_batch(), images_.shape()[0],
                       is_training ? Extent::Training : Extent::Forward);
}

std::string ImageNetwork::stored() const { return stored_as(sparse_weights_); }

}  // namespace lacuna::bench
