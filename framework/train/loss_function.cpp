#include "lacuna/framework/train/loss_function.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <numeric>
#include <span>
#include <utility>
#include <vector>

#include "lacuna/framework/autograd/classes/tiled_logits.hpp"
#include "lacuna/framework/autograd/ops/arithmetic.h"
#include "lacuna/framework/config/names.h"
#include "lacuna/framework/config/sparse_examples.h"
#include "lacuna/framework/data/first_batch.hpp"
#include "lacuna/framework/kernels/pointwise/reorder.hpp"
#include "lacuna/framework/train/class_balance.hpp"
#include "lacuna/framework/train/label_lists.hpp"
#include "lacuna/framework/train/spread_loss.hpp"

namespace lacuna {

namespace {

// Before the first step, and not in the middle of an epoch.
void require_probabilities(const Config& config, const Dataset& data) {
  constexpr int64_t kChunk = 1024;
  std::vector<int64_t> indices;
  for (int64_t first = 0; first < data.size(); first += kChunk) {
    indices.resize(static_cast<size_t>(std::min(kChunk, data.size() - first)));
    std::iota(indices.begin(), indices.end(), first);
    const Tensor targets = data.gather(indices).targets;
    const std::span<const float> values = targets.storage();
    const auto found = std::ranges::find_if_not(values, [](float t) { return t >= 0 && t <= 1; });
    if (found == values.end()) continue;
    const int64_t example = first + (found - values.begin()) / data.num_outputs();
    config.error(fmt::format(
        "binary_cross_entropy needs targets from 0 to 1, and training example {} has {}; use "
        "mse, or scale the targets",
        example, *found));
  }
}

// What is no loss's name counts as the last one.
LossKind kind_named(std::string_view name) {
  if (name == "cross_entropy" || name == "distillation") return LossKind::CrossEntropy;
  return name == "binary_cross_entropy" ? LossKind::BinaryCrossEntropy : LossKind::MeanSquaredError;
}

}  // namespace

LossKind loss_kind(const Config& config) {
  const Config loss = config.get("loss");
  return kind_named((loss.is_map() ? loss.get("type") : loss).text());
}

LossFunction LossFunction::from_config(const Config& parent, const Dataset& data) {
  const Config config = parent.get("loss");
  const char* const usual = data.num_classes() > 0 ? "cross_entropy" : "mse";
  std::string name;
  if (config.is_null()) {
    name = parent.get<std::string>("loss", usual);
  } else if (config.is_map() && (config.has("label_smoothing") || config.has("class_weights") ||
                                 config.has("ignore_index"))) {
    name = config.get<std::string>("type", usual);  // it states how, and the data may state what
  } else {
    name = config.is_map() ? config.required<std::string>("type") : config.as<std::string>();
  }
  const std::vector<std::string> names = {"cross_entropy", "distillation", "binary_cross_entropy",
                                          "mse"};
  if (std::ranges::find(names, name) == names.end()) {
    config.error("unknown loss '" + name + "'; " + suggest_name(name, names));
  }
  LossFunction loss;
  loss.kind_ = kind_named(name);
  if (name == "distillation") {
    if (!config.is_map()) config.error("distillation needs a map with its `teacher`");
    loss.read_distillation(config);
  }
  for (const char* key : {"class_weights", "label_smoothing", "ignore_index"}) {
    if (!config.is_map() || loss.is_classification() || !config.has(key)) continue;
    config.at(key).error("belongs to cross_entropy, and the loss is " + name + "; leave it out");
  }
  if (config.is_map() && config.has("pos_weight") && loss.kind_ != Kind::BinaryCrossEntropy) {
    config.at("pos_weight")
        .error("belongs to binary_cross_entropy, and the loss is " + name + "; leave it out");
  }
  loss.choose_outputs(config, data);
  loss.output_shape_ = Shape{loss.outputs_};
  if (loss.is_classification() && gives_tensor(data, kLabelLists)) {
    loss.take_label_lists(config, name);
    return loss;
  }
  if (loss.is_classification() && data.vocabulary_size() > 0 && data.size() > 0) {
    const int64_t first = 0;
    const bool has_token_labels = data.gather({&first, 1}).labels.shape().rank() == 2;
    if (has_token_labels) loss.output_shape_ = Shape{data.example_shape()[0], loss.outputs_};
  }
  if (!config.is_map()) return loss;
  if (loss.is_classification()) loss.read_cross_entropy(config, data);
  if (loss.kind_ == Kind::BinaryCrossEntropy) {
    loss.pos_weights_ = read_pos_weights(config, data, loss.outputs_);
  }
  return loss;
}

void LossFunction::choose_outputs(const Config& config, const Dataset& data) {
  const int64_t classes = data.num_classes();
  num_classes_ = classes;
  switch (kind_) {
    case Kind::CrossEntropy:
      if (classes == 0) {
        config.error("cross_entropy needs data with classes; this is regression: use mse");
      }
      outputs_ = classes;
      return;
    case Kind::BinaryCrossEntropy:
      if (classes > 0 && classes != 2) {
        config.error(
            fmt::format("binary_cross_entropy needs two classes, or targets of 0 and 1 "
                        "(regression); the data has {} classes: use cross_entropy",
                        classes));
      }
      outputs_ = classes > 0 ? 1 : data.num_outputs();
      if (classes == 0) require_probabilities(config, data);
      return;
    case Kind::MeanSquaredError:
      if (classes > 0) {
        config.error(fmt::format(
            "mse needs regression targets; the data has {} classes: use cross_entropy", classes));
      }
      outputs_ = data.num_outputs();
      return;
    case Kind::MultiLabel:
      break;  // chosen later
  }
}

void LossFunction::take_label_lists(const Config& config, const std::string& name) {
  if (name == "distillation") {
    config.error("distillation is for examples that have one class each; give cross_entropy");
  }
  for (const char* key : {"class_weights", "label_smoothing", "ignore_index"}) {
    if (!config.is_map() || !config.has(key)) continue;
    config.at(key).error(
        "is for examples that have one class each, and these have several labels; leave it out");
  }
  kind_ = Kind::MultiLabel;
  num_classes_ = 0;
}

void LossFunction::read_cross_entropy(const Config& config, const Dataset& data) {
  cross_entropy_.label_smoothing = config.get<double>("label_smoothing", 0.0);
  if (!(cross_entropy_.label_smoothing >= 0.0 && cross_entropy_.label_smoothing < 1.0)) {
    config.get("label_smoothing").fail("a number in [0, 1)");
  }
  ignored_label_ = config.optional<int64_t>("ignore_index");
  if (ignored_label_ == kIgnoredLabel) ignored_label_.reset();  // which never counts
  if (ignored_label_ && (*ignored_label_ < 0 || *ignored_label_ >= num_classes_)) {
    config.at("ignore_index")
        .fail(fmt::format("a class from 0 to {}, or {}, which no example has", num_classes_ - 1,
                          kIgnoredLabel));
  }
  cross_entropy_.class_weights = read_class_weights(config, data, ignored_label_);
}

void LossFunction::read_distillation(const Config& config) {
  Distillation& d = distillation_.emplace();
  d.teacher = config.required<std::string>("teacher");
  d.temperature = config.get<double>("temperature", d.temperature);
  if (!(d.temperature > 0.0 && d.temperature <= 1e6)) {
    config.at("temperature").fail("a number above 0 and at most 1e6");
  }
  d.weight = config.get<double>("weight", d.weight);
  if (!(d.weight >= 0.0 && d.weight <= 1.0)) config.at("weight").fail("a number in [0, 1]");
}

LossFunction LossFunction::for_evaluation() const {
  LossFunction plain = *this;
  plain.cross_entropy_.label_smoothing = 0.0;
  return plain;
}

void LossFunction::take_outputs(const Shape& output) {
  const bool fits = has_token_labels() && output.rank() == 2 && output[0] == output_shape_[0];
  if (!fits || output[1] <= outputs_) return;
  outputs_ = output[1];
  output_shape_ = output;
  std::vector<float>& weights = cross_entropy_.class_weights;
  if (!weights.empty()) weights.resize(static_cast<size_t>(outputs_), 1.0f);
}

const char* LossFunction::outputs_are() const {
  switch (kind_) {
    case Kind::CrossEntropy:
    case Kind::MultiLabel:
      return "classes";
    case Kind::BinaryCrossEntropy:
      return "decisions";
    case Kind::MeanSquaredError:
      break;
  }
  return "target values";
}

namespace {

// The targets of binary cross entropy: regression's, or the labels of two classes.
Tensor binary_targets(const Batch& batch) {
  if (!batch.labels.defined()) return batch.targets;
  Tensor targets = Tensor::empty(Shape{batch.size, 1});
  std::ranges::transform(batch.labels.values(), targets.mutable_data(),
                         [](int64_t label) { return static_cast<float>(label); });
  for (size_t i = 0; i < batch.own_shares.size(); ++i) {
    float& target = targets.mutable_data()[i];
    const float share = batch.own_shares[i];
    target = share * target + (1.0f - share) * static_cast<float>(batch.other_labels.values()[i]);
  }
  return targets;
}

// The labels that outputs are held against: all, or those of tokens that have one, where there are
// outputs of these alone.
IndexTensor labels_for(const Shape& output, const Batch& batch) {
  if (output.rank() != 2 || batch.labels.shape().rank() != 2) return batch.labels;
  std::vector<int64_t> labels;
  std::ranges::copy_if(batch.labels.values(), std::back_inserter(labels),
                       [](int64_t label) { return label != kIgnoredLabel; });
  const auto count = static_cast<int64_t>(labels.size());
  return IndexTensor(Shape{count}, std::move(labels));
}

// 0 for padding, of tokens that have it; else undefined.
IndexTensor padding_mask(const Batch& batch) {
  const auto mask = batch.named.find("attention_mask");
  return mask == batch.named.end() ? IndexTensor() : mask->second;
}

}  // namespace

Variable LossFunction::operator()(const Variable& output, const Batch& batch) const {
  switch (kind_) {
    case Kind::BinaryCrossEntropy:
      return binary_cross_entropy(output, binary_targets(batch), pos_weights_);
    case Kind::MeanSquaredError:
      return mse_loss(output, batch.targets);
    case Kind::MultiLabel:
      return multi_label_cross_entropy(output, batch.named.at(kLabelLists));
    case Kind::CrossEntropy:
      break;
  }
  if (!batch.own_shares.empty()) {
    return mixed_cross_entropy(output, batch.labels, batch.other_labels, batch.own_shares,
                               cross_entropy_);
  }
  return cross_entropy(output, labels_for(output.shape(), batch), cross_entropy_);
}

LossPart LossFunction::part_of(const LossWeights& whole, const Variable& output,
                               const Tensor& teacher, const Batch& batch) const {
  const auto share = [](double part, double all) { return all > 0.0 ? part / all : 0.0; };
  const auto value_of = [](const Variable& loss) {
    return static_cast<double>(loss.value().item());
  };
  const LossWeights own = weights_of(batch);
  const double by_labels = teacher.defined() ? 1.0 - distillation_->weight : 1.0;
  // In a batch of all examples, the weights of others divide the loss of labels of weight 0.
  const bool is_spread = own.labels == 0.0 && whole.labels > 0.0 &&
                         !cross_entropy_.class_weights.empty() &&
                         cross_entropy_.label_smoothing > 0.0;
  const auto [mean, weight] =
      is_spread ? spread_loss(output, labels_for(output.shape(), batch), cross_entropy_)
                : SpreadLoss{(*this)(output, batch), own.labels};
  LossPart part = {.loss = scale(mean, static_cast<float>(by_labels * share(weight, whole.labels))),
                   .sums = {.labels = by_labels * value_of(mean) * weight, .weights = own}};
  if (!teacher.defined()) return part;
  const double by_teacher = distillation_->weight;
  const Variable taught =
      distillation_loss(output, teacher, distillation_->temperature,
                        has_token_labels() ? padding_mask(batch) : IndexTensor());
  const double teacher_share = by_teacher * share(own.rows, whole.rows);
  part.loss = add(part.loss, scale(taught, static_cast<float>(teacher_share)));
  part.sums.teacher = by_teacher * value_of(taught) * own.rows;
  return part;
}

int64_t LossFunction::count_correct(const Tensor& output, const Batch& batch) const {
  if (kind_ == Kind::CrossEntropy) {
    return lacuna::count_correct(output, labels_for(output.shape(), batch));
  }
  const Tensor logits = reordered(output, Order::RowMajor), targets = binary_targets(batch);
  int64_t correct = 0;
  for (int64_t i = 0; i < logits.numel(); ++i) {
    const float x = logits.data()[i];  // comparisons with NaN are false
    correct += (targets.data()[i] > 0.5f ? x > 0.0f : x <= 0.0f) ? 1 : 0;
  }
  return correct;
}

std::vector<int64_t> LossFunction::predicted_classes(const Tensor& output) const {
  if (kind_ == Kind::CrossEntropy) return argmax_rows(output);
  const std::vector<float> logits = output.to_vector();
  std::vector<int64_t> classes;
  for (const float x : logits) classes.push_back(x > 0.0f ? 1 : 0);
  return classes;
}

int64_t LossFunction::answers_of(const Batch& batch) const {
  if (!is_classification()) return batch.size * answers();
  return batch.labels.numel() - std::ranges::count(batch.labels.values(), kIgnoredLabel);
}

double LossFunction::weight_of(const Batch& batch) const {
  if (has_label_lists()) return static_cast<double>(count_labelled(batch));
  if (cross_entropy_.class_weights.empty()) {
    return static_cast<double>(is_classification() ? answers_of(batch) : batch.size);
  }
  double total = 0.0;
  for (const int64_t label : batch.labels.values()) {
    if (label == kIgnoredLabel) continue;
    total += cross_entropy_.class_weights[static_cast<size_t>(label)];
  }
  return total;
}

LossWeights LossFunction::weights_of(const Batch& batch) const {
  int64_t rows = batch.size;
  if (has_token_labels()) {
    const IndexTensor mask = padding_mask(batch);
    rows = batch.labels.numel();
    if (mask.defined()) rows -= std::ranges::count(mask.values(), 0);
  }
  return {.labels = weight_of(batch), .rows = static_cast<double>(rows)};
}

LossWeights& LossWeights::operator+=(const LossWeights& other) {
  labels += other.labels;
  rows += other.rows;
  return *this;
}

LossSums& LossSums::operator+=(const LossSums& other) {
  labels += other.labels;
  teacher += other.teacher;
  weights += other.weights;
  return *this;
}

double LossSums::mean() const {
  const auto ratio = [](double sum, double weight) { return weight > 0.0 ? sum / weight : 0.0; };
  return ratio(labels, weights.labels) + ratio(teacher, weights.rows);
}

std::vector<int64_t> argmax_rows(const Tensor& logits) {
  const Tensor rows = reordered(logits, Order::RowMajor);
  const int64_t classes = rows.shape().features();
  std::vector<int64_t> best(static_cast<size_t>(rows.shape().batch()));
  for (size_t i = 0; i < best.size(); ++i) {
    const float* row = rows.data() + static_cast<int64_t>(i) * classes;
    int64_t largest = 0;
    for (int64_t j = 1; j < classes; ++j) {
      if (row[j] > row[largest]) largest = j;
    }
    best[i] = largest;
  }
  return best;
}

int64_t count_correct(const Tensor& logits, const IndexTensor& labels) {
  return count_in_largest(logits, labels, 1);
}

int64_t count_in_largest(const Tensor& logits, const IndexTensor& labels, int64_t count) {
  const Tensor rows = reordered(logits, Order::RowMajor);
  const int64_t classes = rows.shape().features();
  int64_t found = 0;
  for (int64_t i = 0; i < rows.shape().batch(); ++i) {
    const float* row = rows.data() + i * classes;
    const int64_t label = labels.values()[static_cast<size_t>(i)];
    if (label < 0 || label >= classes) continue;  // also what is ignored
    // How many come before the label.
    int64_t before = 0;
    bool has_nan = false;
    for (int64_t j = 0; j < classes; ++j) {
      has_nan |= std::isnan(row[j]);
      before += (j < label ? row[j] >= row[label] : row[j] > row[label]) ? 1 : 0;
    }
    found += !has_nan && before < count ? 1 : 0;
  }
  return found;
}

}  // namespace lacuna
