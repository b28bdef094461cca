#include "lacuna/framework/autograd/ops/loss.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>

#include "lacuna/framework/autograd/node.h"
#include "lacuna/framework/core/error.h"
#include "lacuna/framework/core/plural.hpp"
#include "lacuna/framework/kernels/pointwise/reorder.hpp"
#include "lacuna/framework/kernels/rowwise/loss.hpp"
#include "lacuna/framework/kernels/rowwise/softmax.hpp"

namespace lacuna {
namespace {

CrossEntropyProblem problem(const Tensor& logits, const IndexTensor& labels,
                            const CrossEntropyOptions& options) {
  return {.examples = logits.shape().batch(),
          .classes = logits.shape().features(),
          .logits = logits.data(),
          .labels = labels.values().data(),
          .label_smoothing = options.label_smoothing,
          .class_weights = options.class_weights.empty() ? nullptr : options.class_weights.data()};
}

// The divisor of the sum over the examples.
double total_weight(const IndexTensor& labels, const CrossEntropyOptions& options) {
  double total = 0.0;
  for (const int64_t label : labels.values()) {
    if (label == kIgnoredLabel) continue;
    total +=
        options.class_weights.empty() ? 1.0f : options.class_weights[static_cast<size_t>(label)];
  }
  return total;
}

struct CrossEntropyNode final : Node {
  CrossEntropyNode(Tensor logits_, IndexTensor labels_, CrossEntropyOptions options_)
      : logits(std::move(logits_)), labels(std::move(labels_)), options(std::move(options_)) {}
  std::string_view name() const override { return "cross_entropy"; }
  std::vector<Tensor*> saved() override { return {&logits}; }

  std::vector<Tensor> backward(const Tensor& dy) override {  // dy []
    const double total = total_weight(labels, options);
    const auto factor = static_cast<float>(total > 0.0 ? dy.item() / total : 0.0);
    Tensor dx = Tensor::empty(logits.shape());
    cross_entropy_gradient(problem(logits, labels, options), factor, dx.mutable_data());
    return {dx};  // dx = dy / total (Σ w q softmax(logits) − w q)   [examples, classes]
  }

  Tensor logits;
  IndexTensor labels;
  CrossEntropyOptions options;
};

struct MixedCrossEntropyNode final : Node {
  explicit MixedCrossEntropyNode(Tensor gradient_) : gradient(std::move(gradient_)) {}
  std::string_view name() const override { return "mixed_cross_entropy"; }
  std::vector<Tensor*> saved() override { return {&gradient}; }

  std::vector<Tensor> backward(const Tensor& dy) override {  // dy []
    Tensor dx = Tensor::empty(gradient.shape());
    std::ranges::transform(gradient.storage(), dx.mutable_data(),
                           [factor = dy.item()](float g) { return factor * g; });
    return {dx};  // dx = dy / examples (softmax(logits) − q)   [examples, classes]
  }

  Tensor gradient;
};

bool is_masked(const IndexTensor& mask, int64_t row) {
  return mask.defined() && mask.values()[static_cast<size_t>(row)] == 0;
}

struct DistillationNode final : Node {
  DistillationNode(Tensor q_, Tensor p_, double temperature_, IndexTensor mask_, int64_t rows_)
      : q(std::move(q_)),
        p(std::move(p_)),
        temperature(temperature_),
        mask(std::move(mask_)),
        rows(rows_) {}
  std::string_view name() const override { return "distillation_loss"; }
  std::vector<Tensor*> saved() override { return {&q, &p}; }

  std::vector<Tensor> backward(const Tensor& dy) override {  // dy []
    const int64_t classes = q.shape().features();
    const auto factor =
        static_cast<float>(rows > 0 ? temperature * dy.item() / static_cast<double>(rows) : 0.0);
    Tensor dx = Tensor::empty(q.shape());
    scaled_difference(factor, q.storage(), p.storage(), dx.mutable_storage());
    for (int64_t i = 0; mask.defined() && i < mask.numel(); ++i) {
      if (is_masked(mask, i)) std::fill_n(dx.mutable_data() + i * classes, classes, 0.0f);
    }
    return {dx};  // dx = T dy / rows (q − p), 0 where masked   [logits]
  }

  Tensor q, p;
  double temperature;
  IndexTensor mask;
  int64_t rows;  // that are not masked
};

// The logits divided by the temperature, and their softmax or its logarithm.
Tensor softened(const Tensor& logits, double temperature, SoftmaxKind kind) {
  const Tensor rows = reordered(logits, Order::RowMajor);
  Tensor result = Tensor::empty(rows.shape());
  const auto factor = static_cast<float>(1.0 / temperature);
  std::ranges::transform(rows.storage(), result.mutable_data(),
                         [factor](float x) { return factor * x; });
  softmax(kind, result.shape().batch(), result.shape().features(), result.data(),
          result.mutable_data());
  return result;
}

struct BinaryCrossEntropyNode final : Node {
  BinaryCrossEntropyNode(Tensor logits_, Tensor targets_, Tensor weights_)
      : logits(std::move(logits_)), targets(std::move(targets_)), weights(std::move(weights_)) {}
  std::string_view name() const override { return "binary_cross_entropy"; }
  std::vector<Tensor*> saved() override { return {&logits, &targets, &weights}; }

  std::vector<Tensor> backward(const Tensor& dy) override {  // dy []
    const auto factor = static_cast<float>(dy.item() / static_cast<double>(targets.numel()));
    Tensor dx = Tensor::empty(logits.shape());
    if (weights.defined()) {
      binary_cross_entropy_gradient(factor, logits.storage(), targets.storage(), weights.storage(),
                                    dx.mutable_storage());
    } else {
      binary_cross_entropy_gradient(factor, logits.storage(), targets.storage(),
                                    dx.mutable_storage());
    }
    return {dx};  // dx = dy / numel ((1 + (w − 1) t) σ(logits) − w t)   [logits]
  }

  Tensor logits, targets;
  Tensor weights;  // of positive targets; undefined: 1 each
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
  const bool fits =
      logits.rank() >= 2 && labels.shape().rank() == logits.rank() - 1 &&
      std::ranges::equal(labels.shape().sizes(),
                         logits.sizes().first(static_cast<size_t>(logits.rank() - 1)));
  if (!fits) {
    throw ShapeError(
        "cross_entropy: needs logits [examples, ..., classes] and labels [examples, ...], found " +
        logits.to_string() + " and " + labels.shape().to_string());
  }
  if (logits.numel() == 0) {
    throw ShapeError("cross_entropy: needs at least one example and one class, found logits " +
                     logits.to_string());
  }
  const std::span<const int64_t> values = labels.values();
  for (size_t i = 0; i < values.size(); ++i) {
    if (values[i] == kIgnoredLabel) continue;
    if (values[i] < 0 || values[i] >= logits.features()) {
      throw DataError(
          fmt::format("cross_entropy: label {} at index {} is out of range for {}, counted from 0",
                      values[i], i, plural(logits.features(), "class", "classes")));
    }
  }
}

void require_class_weights(const std::vector<float>& weights, int64_t classes) {
  if (weights.empty()) return;
  if (static_cast<int64_t>(weights.size()) != classes) {
    throw ConfigError(
        fmt::format("cross_entropy: expected one class weight for each of {}, found {}",
                    plural(classes, "class", "classes"), weights.size()));
  }
  for (size_t j = 0; j < weights.size(); ++j) {
    if (weights[j] >= 0.0f && std::isfinite(weights[j])) continue;
    throw ConfigError(fmt::format(
        "cross_entropy: class weight {} must be a finite number of at least 0, found {}", j,
        weights[j]));
  }
}

// The weights of the outputs, for each element; undefined if there are none.
Tensor weights_of_elements(std::span<const float> weights, const Shape& shape) {
  if (weights.empty()) return Tensor();
  if (static_cast<int64_t>(weights.size()) != shape.features()) {
    throw ConfigError(
        fmt::format("binary_cross_entropy: expected one weight of positive targets for each of {}, "
                    "found {}",
                    plural(shape.features(), "output"), weights.size()));
  }
  for (const float weight : weights) {
    if (weight >= 0.0f && std::isfinite(weight)) continue;
    throw ConfigError(
        fmt::format("binary_cross_entropy: the weight of a positive target must be a finite number "
                    "of at least 0, found {}",
                    weight));
  }
  Tensor result = Tensor::empty(shape);
  float* out = result.mutable_data();
  for (int64_t row = 0; row < shape.batch(); ++row) out = std::ranges::copy(weights, out).out;
  return result;
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
  require_class_weights(options.class_weights, logits.shape().features());
  const Tensor rows = reordered(logits.value(), Order::RowMajor);
  const double sum = cross_entropy(problem(rows, labels, options));
  const double total = total_weight(labels, options);
  const auto loss = static_cast<float>(total > 0.0 ? sum / total : 0.0);
  return record<CrossEntropyNode>(Tensor::scalar(loss), {logits}, rows, labels, options);
}

Variable mixed_cross_entropy(const Variable& logits, const IndexTensor& labels,
                             const IndexTensor& other_labels, std::span<const float> shares,
                             const CrossEntropyOptions& options) {
  if (!options.class_weights.empty()) {
    throw ConfigError(
        "cross_entropy: class weights cannot be combined with mixtures of examples (mixup)");
  }
  require_labels(logits.shape(), labels);
  require_labels(logits.shape(), other_labels);
  const int64_t examples = logits.shape().batch(), classes = logits.shape().features();
  if (logits.shape().rank() != 2 || static_cast<int64_t>(shares.size()) != examples) {
    throw ShapeError(fmt::format(
        "cross_entropy: mixtures need logits [examples, classes] and one share per "
        "example, found {} and {}",
        logits.shape().to_string(), plural(static_cast<int64_t>(shares.size()), "share")));
  }
  const Tensor log_p = softened(logits.value(), 1.0, SoftmaxKind::Logarithm);
  Tensor gradient = Tensor::empty(log_p.shape());
  const double spread = options.label_smoothing / static_cast<double>(classes);
  const double mean = 1.0 / static_cast<double>(examples);
  double total = 0.0;
  for (int64_t i = 0; i < examples; ++i) {
    const auto at = static_cast<size_t>(i);
    const int64_t own = labels.values()[at], other = other_labels.values()[at];
    const double share = shares[at];
    for (int64_t j = 0; j < classes; ++j) {
      const double log_q = log_p.data()[i * classes + j];
      const double target =
          spread + (1.0 - options.label_smoothing) *
                       ((j == own ? share : 0.0) + (j == other ? 1.0 - share : 0.0));
      total -= target * log_q;
      gradient.mutable_data()[i * classes + j] =
          static_cast<float>(mean * (std::exp(log_q) - target));
    }
  }
  return record<MixedCrossEntropyNode>(Tensor::scalar(static_cast<float>(mean * total)), {logits},
                                       gradient);
}

Variable distillation_loss(const Variable& logits, const Tensor& teacher, double temperature,
                           const IndexTensor& mask) {
  if (!(temperature > 0.0 && std::isfinite(temperature))) {
    throw ConfigError(fmt::format(
        "distillation_loss: temperature must be a finite number above 0, found {:f}", temperature));
  }
  if (logits.shape() != teacher.shape()) {
    throw ShapeError("distillation_loss: the model's logits and the teacher's differ in shape: " +
                     logits.shape().to_string() + " and " + teacher.shape().to_string());
  }
  if (logits.shape().rank() < 2 || teacher.numel() == 0) {
    throw ShapeError(
        "distillation_loss: needs logits [examples, ..., classes] with at least one element, "
        "found " +
        teacher.shape().to_string());
  }
  if (mask.defined() && mask.numel() != teacher.shape().batch()) {
    throw ShapeError("distillation_loss: needs a mask of one value for each row of logits " +
                     teacher.shape().to_string() + ", found " + mask.shape().to_string());
  }
  const Tensor p = softened(teacher, temperature, SoftmaxKind::Probabilities),
               log_p = softened(teacher, temperature, SoftmaxKind::Logarithm),
               log_q = softened(logits.value(), temperature, SoftmaxKind::Logarithm);
  const int64_t classes = p.shape().features();
  int64_t rows = 0;
  double total = 0.0;
  for (int64_t row = 0; row < p.shape().batch(); ++row) {
    if (is_masked(mask, row)) continue;
    ++rows;
    for (int64_t i = row * classes; i < (row + 1) * classes; ++i) {
      const double share = p.data()[i];  // of 0, its logarithm is not a number
      if (share > 0.0) total += share * (double{log_p.data()[i]} - double{log_q.data()[i]});
    }
  }
  const double mean = rows > 0 ? total / static_cast<double>(rows) : 0.0;
  const auto loss = static_cast<float>(temperature * temperature * mean);
  return record<DistillationNode>(Tensor::scalar(loss), {logits},
                                  softened(logits.value(), temperature, SoftmaxKind::Probabilities),
                                  p, temperature, mask, rows);
}

Variable binary_cross_entropy(const Variable& logits, const Tensor& targets,
                              std::span<const float> pos_weights) {
  if (logits.shape() != targets.shape()) {
    throw ShapeError("binary_cross_entropy: logits and targets differ in shape: " +
                     logits.shape().to_string() + " and " + targets.shape().to_string());
  }
  if (targets.numel() == 0) {
    throw ShapeError("binary_cross_entropy: needs at least one element, found " +
                     targets.shape().to_string());
  }
  const Tensor x = reordered(logits.value(), Order::RowMajor),
               t = reordered(targets, Order::RowMajor);
  for (int64_t i = 0; i < t.numel(); ++i) {
    if (t.data()[i] >= 0.0f && t.data()[i] <= 1.0f) continue;
    const int64_t outputs = t.shape().features();
    throw DataError(
        fmt::format("binary_cross_entropy: target {} of example {} is {}, expected 0 or 1 (or a "
                    "probability between them)",
                    i % outputs, i / outputs, t.data()[i]));
  }
  const Tensor weights = weights_of_elements(pos_weights, t.shape());
  const double total = weights.defined()
                           ? binary_cross_entropy(x.storage(), t.storage(), weights.storage())
                           : binary_cross_entropy(x.storage(), t.storage());
  const auto loss = static_cast<float>(total / static_cast<double>(t.numel()));
  return record<BinaryCrossEntropyNode>(Tensor::scalar(loss), {logits}, x, t, weights);
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
