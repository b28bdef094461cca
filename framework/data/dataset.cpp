#include "lacuna/framework/data/dataset.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>
#include <utility>

#include "lacuna/framework/core/error.h"
#include "lacuna/framework/core/plural.hpp"
#include "lacuna/framework/data/input_scale.hpp"

namespace lacuna {
namespace {

// Below this the float reciprocal would overflow.
constexpr double kSmallestStd = 1e-30;
// A feature whose std is below this fraction of its mean is constant up to the rounding of float32.
constexpr double kConstantFeature = 1e-7;

void require_inside(std::span<const int64_t> indices, int64_t size) {
  for (const int64_t index : indices) {
    if (index < 0 || index >= size) {
      throw StateError(fmt::format("example {} is out of range: the dataset has {}", index,
                                   plural(size, "example")));
    }
  }
}

Shape batched(int64_t size, const Shape& example) {
  std::vector<int64_t> sizes{size};
  sizes.insert(sizes.end(), example.sizes().begin(), example.sizes().end());
  return Shape(std::span<const int64_t>(sizes));
}

int64_t input_values(const Examples& examples) {
  return std::visit([](const auto& values) { return static_cast<int64_t>(values.size()); },
                    examples.inputs);
}

void validate(const Examples& examples) {
  const int64_t features = examples.example_shape.numel();
  if (features < 1) {
    throw DataError("examples of shape " + examples.example_shape.to_string() + " hold no values");
  }
  if (input_values(examples) % features != 0) {
    throw DataError(fmt::format("{} input values are not a whole number of examples of shape {}",
                                input_values(examples), examples.example_shape.to_string()));
  }
  if (examples.num_classes > 0 && examples.num_outputs > 0) {
    throw DataError(
        fmt::format("a dataset has either classes or regression outputs, not both; found {} "
                    "classes and {} outputs",
                    examples.num_classes, examples.num_outputs));
  }
  const bool is_classification = examples.num_classes > 0;
  const int64_t size = examples.size();
  const auto found =
      static_cast<int64_t>(is_classification ? examples.labels.size() : examples.targets.size());
  const int64_t expected = is_classification ? size : size * examples.num_outputs;
  if (found != expected) {
    throw DataError(fmt::format("expected {} for {}, found {}",
                                plural(expected, is_classification ? "label" : "target value"),
                                plural(size, "input"), found));
  }
  const size_t names = examples.class_names.size();
  if (names != 0 && names != static_cast<size_t>(examples.num_classes)) {
    throw DataError(fmt::format("expected one class name for each of {}, found {}",
                                plural(examples.num_classes, "class", "classes"), names));
  }
  for (size_t i = 0; i < examples.labels.size(); ++i) {
    if (examples.labels[i] < 0 || examples.labels[i] >= examples.num_classes) {
      throw DataError(fmt::format("label {} of example {} is outside of [0, {})",
                                  examples.labels[i], i, examples.num_classes));
    }
  }
}

// "one", or what else a mean may have as many values as.
std::string allowed_counts(const Examples& examples) {
  const int64_t channels = channels_of(examples.example_shape);
  const std::string features =
      examples.has_byte_inputs()
          ? ""
          : fmt::format(", or one for each of the {} features", examples.example_shape.numel());
  if (channels > 1)
    return fmt::format("one, or one for each of the {} channels", channels) + features;
  return examples.has_byte_inputs() ? "one (images have one for each channel, and these have one)"
                                    : "one" + features;
}

void validate(const Normalization& normalization, const Examples& examples) {
  const int64_t features = examples.example_shape.numel();
  const int64_t channels = channels_of(examples.example_shape);
  const auto check = [&](const std::vector<double>& values, const char* name) {
    const auto count = static_cast<int64_t>(values.size());
    const bool fits =
        count == 1 || count == channels || (count == features && !examples.has_byte_inputs());
    if (!fits) {
      throw DataError(fmt::format("the normalization's {} has {}; expected {}", name,
                                  plural(count, "value"), allowed_counts(examples)));
    }
    for (const double value : values) {
      if (!std::isfinite(value)) {
        throw DataError(std::string("the normalization's ") + name + " is not finite");
      }
    }
  };
  check(normalization.mean, "mean");
  check(normalization.std, "std");
  for (const double value : normalization.std) {
    if (value < kSmallestStd) {
      throw DataError(fmt::format("the normalization's std must be at least {:g}, found {:g}",
                                  kSmallestStd, value));
    }
  }
}

// Examples of another dataset under indices of its own.
class Subset final : public Dataset {
 public:
  Subset(std::shared_ptr<const Dataset> dataset, std::vector<int64_t> indices)
      : dataset_(std::move(dataset)), indices_(std::move(indices)) {
    const std::span<const int32_t> lengths = dataset_->lengths();
    if (lengths.empty()) return;
    lengths_.reserve(indices_.size());
    for (const int64_t index : indices_) lengths_.push_back(lengths[static_cast<size_t>(index)]);
  }

  int64_t size() const override { return static_cast<int64_t>(indices_.size()); }
  const Shape& example_shape() const override { return dataset_->example_shape(); }
  int64_t vocabulary_size() const override { return dataset_->vocabulary_size(); }
  std::shared_ptr<const Tokenizer> tokenizer() const override { return dataset_->tokenizer(); }
  std::span<const int32_t> lengths() const override { return lengths_; }
  int64_t num_classes() const override { return dataset_->num_classes(); }
  int64_t num_outputs() const override { return dataset_->num_outputs(); }
  TokenLabel token_label() const override { return dataset_->token_label(); }
  std::vector<std::string> class_names() const override { return dataset_->class_names(); }
  Batch gather(std::span<const int64_t> indices) const override {
    return dataset_->gather(mapped(indices));
  }
  Batch gather_for_training(std::span<const int64_t> indices, uint64_t seed,
                            uint64_t epoch) const override {
    return dataset_->gather_for_training(mapped(indices), seed, epoch);
  }
  std::vector<int64_t> labels_of(std::span<const int64_t> indices) const override {
    return dataset_->labels_of(mapped(indices));
  }
  bool has_labels_at_hand() const override { return dataset_->has_labels_at_hand(); }
  bool may_prefetch() const override { return dataset_->may_prefetch(); }

 private:
  std::vector<int64_t> mapped(std::span<const int64_t> indices) const {
    require_inside(indices, size());
    std::vector<int64_t> result(indices.size());
    std::ranges::transform(indices, result.begin(),
                           [&](int64_t index) { return indices_[static_cast<size_t>(index)]; });
    return result;
  }

  std::shared_ptr<const Dataset> dataset_;
  std::vector<int64_t> indices_;
  std::vector<int32_t> lengths_;
};

// Float inputs, or all integers by name; and the answers.
void add_batch(const Batch& batch, DataHash& hash) {
  constexpr HashLimits kAll{.all_up_to = std::numeric_limits<int64_t>::max()};
  if (batch.inputs.defined()) {
    hash.inputs = hash_values(batch.inputs.to_vector(), kAll, hash.inputs);
  }
  for (const auto& [name, numbers] : batch.named) {
    hash.inputs = hash_values(numbers.values(), kAll, hash.inputs);
  }
  if (batch.labels.defined()) {
    hash.answers = hash_values(batch.labels.values(), kAll, hash.answers);
  }
  if (batch.targets.defined()) {
    hash.answers = hash_values(batch.targets.to_vector(), kAll, hash.answers);
  }
}

}  // namespace

std::vector<int64_t> Dataset::labels_of(std::span<const int64_t> indices) const {
  const Batch batch = gather(indices);
  const std::span<const int64_t> labels = batch.labels.values();
  return {labels.begin(), labels.end()};
}

DataHash Dataset::hash(int64_t examples, const HashLimits& limits) const {
  constexpr int64_t kBytes = 4, kFewest = 2, kAtOnce = int64_t{1} << 17;
  const int64_t values = std::max<int64_t>(1, example_shape().numel());
  const int64_t count = examples <= limits.all_up_to / kBytes / values
                            ? examples
                            : std::min(examples, std::max(kFewest, limits.samples / values));
  const auto at_once = static_cast<size_t>(std::max<int64_t>(1, kAtOnce / values));
  DataHash hash{.size = examples};
  std::vector<int64_t> indices;
  for (int64_t i = 0; i < count; ++i) {
    indices.push_back(evenly_spread(i, count, examples));
    if (i + 1 < count && indices.size() < at_once) continue;
    add_batch(gather(indices), hash);
    indices.clear();
  }
  return hash;
}

int64_t Examples::size() const { return input_values(*this) / example_shape.numel(); }

ArrayDataset::ArrayDataset(Examples examples)
    : ArrayDataset((validate(examples), std::make_shared<const Examples>(std::move(examples))),
                   Normalization{}) {}

ArrayDataset::ArrayDataset(std::shared_ptr<const Examples> examples, Normalization normalization)
    : examples_(std::move(examples)),
      normalization_(std::move(normalization)),
      size_(examples_->size()) {
  validate(normalization_, *examples_);
  InputScale scale(normalization_, example_shape(), examples_->has_byte_inputs());
  byte_scales_ = std::move(scale.scales);
  byte_offsets_ = std::move(scale.offsets);
  means_ = std::move(scale.means);
  inverse_stds_ = std::move(scale.inverse_stds);
}

std::vector<ByteScale> ArrayDataset::byte_scales() const {
  std::vector<ByteScale> scales;
  for (size_t channel = 0; channel < byte_scales_.size(); ++channel) {
    scales.push_back({byte_scales_[channel], byte_offsets_[channel]});
  }
  return scales;
}

Batch ArrayDataset::gather(std::span<const int64_t> indices) const {
  require_inside(indices, size_);
  Batch batch;
  batch.size = static_cast<int64_t>(indices.size());
  batch.inputs = Tensor::empty(batched(batch.size, example_shape()));
  if (examples_->has_byte_inputs()) {
    gather_bytes(indices, batch.inputs.mutable_data());
  } else {
    gather_floats(indices, batch.inputs.mutable_data());
  }
  if (num_classes() > 0) {
    batch.labels = IndexTensor(Shape{batch.size}, labels_of(indices));
  } else if (num_outputs() > 0) {
    batch.targets = Tensor::empty(Shape{batch.size, num_outputs()});
    float* out = batch.targets.mutable_data();
    for (const int64_t index : indices) {
      out = std::copy_n(examples_->targets.data() + index * num_outputs(), num_outputs(), out);
    }
  }
  return batch;
}

std::vector<int64_t> ArrayDataset::labels_of(std::span<const int64_t> indices) const {
  require_inside(indices, size_);
  std::vector<int64_t> labels(num_classes() > 0 ? indices.size() : 0);
  std::ranges::transform(indices.first(labels.size()), labels.begin(), [&](int64_t index) {
    return examples_->labels[static_cast<size_t>(index)];
  });
  return labels;
}

DataHash ArrayDataset::hash(int64_t examples, const HashLimits& limits) const {
  const auto values = static_cast<size_t>(examples * example_shape().numel());
  DataHash hash{.size = examples};
  hash.inputs =
      std::visit([&](const auto& all) { return hash_values(std::span(all).first(values), limits); },
                 examples_->inputs);
  const auto count = static_cast<size_t>(examples);
  if (num_classes() > 0) {
    hash.answers = hash_values(std::span(examples_->labels).first(count), limits);
  } else if (num_outputs() > 0) {
    const size_t targets = count * static_cast<size_t>(num_outputs());
    hash.answers = hash_values(std::span(examples_->targets).first(targets), limits);
  }
  return hash;
}

void ArrayDataset::gather_bytes(std::span<const int64_t> indices, float* out) const {
  const std::span<const uint8_t> bytes = std::get<0>(examples_->inputs);
  const auto features = static_cast<size_t>(example_shape().numel());
  for (const int64_t index : indices) {
    const auto row = bytes.subspan(static_cast<size_t>(index) * features, features);
    scale_bytes(row, byte_scales_, byte_offsets_, out);
    out += features;
  }
}

void ArrayDataset::gather_floats(std::span<const int64_t> indices, float* out) const {
  const std::span<const float> values = std::get<1>(examples_->inputs);
  const auto features = static_cast<size_t>(example_shape().numel());
  for (const int64_t index : indices) {
    const auto row = values.subspan(static_cast<size_t>(index) * features, features);
    scale_floats(row, means_.data(), inverse_stds_.data(), out);
    out += features;
  }
}

std::shared_ptr<const ArrayDataset> ArrayDataset::normalized(Normalization normalization) const {
  return std::shared_ptr<const ArrayDataset>(new ArrayDataset(examples_, std::move(normalization)));
}

Normalization ArrayDataset::standard_normalization(std::span<const int64_t> indices) const {
  require_inside(indices, size_);
  const int64_t features = example_shape().numel();
  const bool is_bytes = examples_->has_byte_inputs();
  const size_t slots = static_cast<size_t>(is_bytes ? channels_of(example_shape()) : features);
  const int64_t run = features / static_cast<int64_t>(slots);  // neighbours that share a slot
  // Two passes, mean first: sums of squares alone would cancel for features far from 0.
  const auto sum_into = [&](std::vector<double>& sums, auto&& term) {
    std::visit(
        [&](const auto& values) {
          const double scale = is_bytes ? 1.0 / 255.0 : 1.0;
          for (const int64_t index : indices) {
            const auto* value = values.data() + index * features;
            for (size_t slot = 0; slot < slots; ++slot) {
              for (int64_t i = 0; i < run; ++i) sums[slot] += term(scale * *value++, slot);
            }
          }
        },
        examples_->inputs);
  };
  const double count =
      std::max(1.0, static_cast<double>(indices.size()) * static_cast<double>(run));
  Normalization result{std::vector<double>(slots, 0.0), std::vector<double>(slots, 0.0)};
  sum_into(result.mean, [](double value, size_t) { return value; });
  for (double& mean : result.mean) mean /= count;
  sum_into(result.std, [&](double value, size_t slot) {
    const double deviation = value - result.mean[slot];
    return deviation * deviation;
  });
  for (size_t slot = 0; slot < slots; ++slot) {
    const double std = std::sqrt(result.std[slot] / count);
    const double smallest = std::max(kSmallestStd, kConstantFeature * std::abs(result.mean[slot]));
    result.std[slot] = std <= smallest ? 1.0 : std;
  }
  return result;
}

std::shared_ptr<const Dataset> subset(std::shared_ptr<const Dataset> dataset,
                                      std::vector<int64_t> indices) {
  require_inside(indices, dataset->size());
  return std::make_shared<Subset>(std::move(dataset), std::move(indices));
}

}  // namespace lacuna
