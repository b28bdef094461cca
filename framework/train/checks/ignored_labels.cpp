#include "lacuna/framework/train/checks/ignored_labels.hpp"

#include <algorithm>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace lacuna {
namespace {

class IgnoredLabels final : public Dataset {
 public:
  IgnoredLabels(std::shared_ptr<const Dataset> whole, int64_t label)
      : whole_(std::move(whole)), label_(label) {}

  int64_t size() const override { return whole_->size(); }
  const Shape& example_shape() const override { return whole_->example_shape(); }
  int64_t vocabulary_size() const override { return whole_->vocabulary_size(); }
  std::shared_ptr<const Tokenizer> tokenizer() const override { return whole_->tokenizer(); }
  std::span<const int32_t> lengths() const override { return whole_->lengths(); }
  int64_t num_classes() const override { return whole_->num_classes(); }
  int64_t num_outputs() const override { return whole_->num_outputs(); }
  TokenLabel token_label() const override { return whole_->token_label(); }
  // Of the labels that are left nobody knows them.
  double characters_per_label() const override { return 0.0; }
  std::vector<std::string> class_names() const override { return whole_->class_names(); }
  Batch gather(std::span<const int64_t> indices) const override {
    return without_label(whole_->gather(indices));
  }
  Batch gather_for_training(std::span<const int64_t> indices, uint64_t seed,
                            uint64_t epoch) const override {
    return without_label(whole_->gather_for_training(indices, seed, epoch));
  }
  bool may_prefetch() const override { return whole_->may_prefetch(); }
  std::vector<int64_t> labels_of(std::span<const int64_t> indices) const override {
    std::vector<int64_t> labels = whole_->labels_of(indices);
    std::ranges::replace(labels, label_, kIgnoredLabel);
    return labels;
  }

 private:
  Batch without_label(Batch batch) const {
    std::vector<int64_t> labels(batch.labels.values().begin(), batch.labels.values().end());
    std::ranges::replace(labels, label_, kIgnoredLabel);
    batch.labels = IndexTensor(batch.labels.shape(), std::move(labels));
    return batch;
  }

  std::shared_ptr<const Dataset> whole_;
  int64_t label_;
};

}  // namespace

DataSplits with_ignored_label(DataSplits splits, int64_t label) {
  for (std::shared_ptr<const Dataset>* split : {&splits.train, &splits.validation, &splits.test}) {
    if (*split != nullptr) *split = std::make_shared<const IgnoredLabels>(*split, label);
  }
  return splits;
}

}  // namespace lacuna
