#include "lacuna/framework/data/sparse/labelled_sparse.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "lacuna/framework/config/sparse_examples.h"
#include "lacuna/framework/core/error.h"
#include "lacuna/framework/data/data_checks.hpp"

namespace lacuna {
namespace {

template <class Value>
std::span<const Value> part_of(const std::vector<Value>& values, const std::vector<int64_t>& begin,
                               int64_t i) {
  const auto first = static_cast<size_t>(begin[static_cast<size_t>(i)]);
  return std::span(values).subspan(first,
                                   static_cast<size_t>(begin[static_cast<size_t>(i) + 1]) - first);
}

// The longest part among those at the indices, at least 1.
int64_t longest(const std::vector<int64_t>& begin, std::span<const int64_t> indices) {
  int64_t most = 1;
  for (const int64_t i : indices) {
    most = std::max(most, begin[static_cast<size_t>(i) + 1] - begin[static_cast<size_t>(i)]);
  }
  return most;
}

// The parts at the indices, padded to the longest.
IndexTensor padded(const std::vector<int32_t>& ids, const std::vector<int64_t>& begin,
                   std::span<const int64_t> indices, int64_t padding) {
  const int64_t most = longest(begin, indices), size = static_cast<int64_t>(indices.size());
  std::vector<int64_t> all(static_cast<size_t>(size * most), padding);
  for (size_t i = 0; i < indices.size(); ++i) {
    std::ranges::copy(part_of(ids, begin, indices[i]),
                      all.begin() + static_cast<int64_t>(i) * most);
  }
  return IndexTensor(Shape{size, most}, std::move(all));
}

// In one number for each example, as its ids and values are.
uint64_t hash_of_ids(std::span<const int32_t> ids) {
  uint64_t hash = joined_hash(kEmptyHash, ids.size());
  for (const int32_t id : ids) hash = joined_hash(hash, static_cast<uint64_t>(id));
  return hash;
}

}  // namespace

LabelledSparse::LabelledSparse(SparseExamples examples)
    : examples_(std::move(examples)), shape_{examples_.features} {}

Batch LabelledSparse::gather(std::span<const int64_t> indices) const {
  for (const int64_t index : indices) {
    if (index >= 0 && index < size()) continue;
    throw StateError(
        fmt::format("example {} is out of range: the dataset has {} examples", index, size()));
  }
  const SparseExamples& e = examples_;
  Batch batch;
  batch.size = static_cast<int64_t>(indices.size());
  batch.named.emplace(kFeatureIds, padded(e.feature_ids, e.feature_begin, indices, -1));
  batch.named.emplace(kLabelLists, padded(e.label_ids, e.label_begin, indices, kIgnoredLabel));
  const Shape& shape = batch.named.at(kFeatureIds).shape();
  batch.inputs = Tensor::zeros(shape);
  for (size_t i = 0; i < indices.size(); ++i) {
    std::ranges::copy(part_of(e.values, e.feature_begin, indices[i]),
                      batch.inputs.mutable_data() + static_cast<int64_t>(i) * shape[1]);
  }
  return batch;
}

DataHash LabelledSparse::hash(int64_t examples, const HashLimits& limits) const {
  const SparseExamples& e = examples_;
  DataHash hash{.size = examples};
  for (int64_t i = 0; i < examples; ++i) {
    hash.inputs = joined_hash(hash.inputs, hash_of_ids(part_of(e.feature_ids, e.feature_begin, i)));
    hash.answers = joined_hash(hash.answers, hash_of_ids(part_of(e.label_ids, e.label_begin, i)));
  }
  const auto values = static_cast<size_t>(e.feature_begin[static_cast<size_t>(examples)]);
  hash.inputs = hash_values(std::span(e.values).first(values), limits, hash.inputs);
  return hash;
}

namespace {

using SparsePtr = std::shared_ptr<const LabelledSparse>;

// `sizes`: the features and labels that the file must have, where they are known.
SparsePtr read_split(const std::string& path, int64_t features, int64_t labels) {
  SparseExamples examples = read_labelled_sparse(path);
  const bool fits = (features == 0 || examples.features == features) &&
                    (labels == 0 || examples.labels == labels);
  if (!fits) {
    throw DataError(
        fmt::format("{}:1: expected {} features{}, as in the training examples, found {} features "
                    "and {} labels",
                    path, features, labels == 0 ? "" : fmt::format(" and {} labels", labels),
                    examples.features, examples.labels));
  }
  return std::make_shared<const LabelledSparse>(std::move(examples));
}

void read_held_out(const Config& data, int64_t features, int64_t labels, DataSplits& splits) {
  if (const auto path = path_of_split(data, "validation")) {
    splits.validation = read_split(*path, features, labels);
  }
  if (const auto path = path_of_split(data, "test")) {
    splits.test = read_split(*path, features, labels);
  }
}

DataSplits load_sparse_held_out(const Config& data, uint64_t, const KnownData& known) {
  DataSplits splits;
  splits.is_held_out = true;
  const int64_t features = known.example_shape.rank() == 1 ? known.example_shape[0] : 0;
  read_held_out(data, features, 0, splits);
  return splits;
}

}  // namespace

DataSplits load_labelled_sparse(const Config& data, uint64_t) {
  DataSplits splits;
  const SparsePtr train = read_split(data.required<std::string>("train"), 0, 0);
  splits.train = train;
  read_held_out(data, train->example_shape()[0], train->num_classes(), splits);
  return splits;
}

DatasetType labelled_sparse_dataset() {
  return {.load = load_labelled_sparse,
          .paths = {"train", "test", "validation"},
          .load_held_out = load_sparse_held_out,
          .split_keys = split_keys_with_test(),
          .late_keys = std::vector<std::string>{"test"}};
}

}  // namespace lacuna
