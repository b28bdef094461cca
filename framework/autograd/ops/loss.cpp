#include "lacuna/framework/autograd/ops/loss.h"

#include <fmt/core.h>

#include <string>
#include <utility>

#include "lacuna/framework/autograd/node.h"
#include "lacuna/framework/core/error.h"
#include "lacuna/framework/kernels/pointwise/reorder.h"
#include "lacuna/framework/kernels/rowwise/loss.h"

namespace lacuna {
namespace {

CrossEntropyProblem problem(const Tensor& logits, const IndexTensor& labels, double smoothing) {
  return {.examples = logits.shape()[0],
          .classes = logits.shape()[1],
          .logits = logits.data(),
          .labels = labels.values().data(),
          .label_smoothing = smoothing};
}

struct CrossEntropyNode final : Node {
  CrossEntropyNode(Tensor logits_, IndexTensor labels_, double smoothing_)
      : logits(std::move(logits_)), labels(std::move(labels_)), smoothing(smoothing_) {}
  std::string_view name() const override { return "cross_entropy"; }
  std::vector<Tensor*> saved() override { return {&logits}; }

  std::vector<Tensor> backward(const Tensor& dy) override {  // dy []
    const auto factor = static_cast<float>(dy.item() / static_cast<double>(logits.shape()[0]));
    Tensor dx = Tensor::empty(logits.shape());
    cross_entropy_gradient(problem(logits, labels, smoothing), factor, dx.mutable_data());
    return {dx};  // dx = dy / examples (softmax(logits) − q)   [examples, classes]
  }

  Tensor logits;
  IndexTensor labels;
  double smoothing;
};

struct MseLossNode final : Node {
  MseLossNode(Tensor prediction_, Tensor target_)
      : prediction(std::move(prediction_)), target(std::move(target_)) {}
  std::string_view name() const override { return "mse_loss"; }
  std::vector<Tensor*> saved() override { return {&prediction, &target}; }

  std::vector<Tensor> backward(const Tensor& dy) override {  // dy []
    const auto factor = static_cast<float>(2.0 * dy.item() / static_cast<double>(target.numel()));
    std::vector<Tensor> gradients(2);
    if (needs(0)) gradients[0] = difference(factor);   // dp = 2 dy / numel (p − t)   [p]
    if (needs(1)) gradients[1] = difference(-factor);  // dt = −dp                    [p]
    return gradients;
  }

  Tensor difference(float factor) const {
    Tensor result = Tensor::empty(prediction.shape());
    scaled_difference(factor, prediction.storage(), target.storage(), result.mutable_storage());
    return result;
  }

  Tensor prediction, target;
};

void require_labels(const Shape& logits, const IndexTensor& labels) {
  if (logits.rank() != 2 || labels.shape() != Shape{logits[0]}) {
    throw ShapeError(
        "cross_entropy: needs logits [examples, classes] and labels [examples], found " +
        logits.to_string() + " and " + labels.shape().to_string());
  }
  if (logits.numel() == 0) {
    throw ShapeError("cross_entropy: needs at least one example and one class, found logits " +
                     logits.to_string());
  }
  const std::span<const int64_t> values = labels.values();
  for (size_t i = 0; i < values.size(); ++i) {
    if (values[i] < 0 || values[i] >= logits[1]) {
      throw DataError(
          fmt::format("cross_entropy: label {} of example {} is out of range: there are {} "
                      "classes, counted from 0",
                      values[i], i, logits[1]));
    }
  }
}

}  // namespace

Variable cross_entropy(const Variable& logits, const IndexTensor& labels,
                       const CrossEntropyOptions& options) {
  const double smoothing = options.label_smoothing;
  if (!(smoothing >= 0.0 && smoothing <= 1.0)) {
    throw ConfigError(
        fmt::format("cross_entropy: label_smoothing must be in [0, 1], found {:f}", smoothing));
  }
  require_labels(logits.shape(), labels);
  const Tensor rows = reordered(logits.value(), Order::RowMajor);
  const double total = cross_entropy(problem(rows, labels, smoothing));
  const auto loss = static_cast<float>(total / static_cast<double>(labels.numel()));
  return record<CrossEntropyNode>(Tensor::scalar(loss), {logits}, rows, labels, smoothing);
}

Variable mse_loss(const Variable& prediction, const Variable& target) {
  if (prediction.shape() != target.shape()) {
    throw ShapeError("mse_loss: prediction and target differ in shape: " +
                     prediction.shape().to_string() + " and " + target.shape().to_string());
  }
  if (target.value().numel() == 0) {
    throw ShapeError("mse_loss: needs at least one element, found " + target.shape().to_string());
  }
  const Tensor p = reordered(prediction.value(), Order::RowMajor),
               t = reordered(target.value(), Order::RowMajor);
  const double total = sum_squared_difference(p.storage(), t.storage());
  const auto loss = static_cast<float>(total / static_cast<double>(t.numel()));
  return record<MseLossNode>(Tensor::scalar(loss), {prediction, target}, p, t);
}

}  // namespace lacuna
