// The `labelled_sparse` dataset: sparse examples with any number of labels each.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "lacuna/framework/config/config.h"
#include "lacuna/framework/data/dataset.h"
#include "lacuna/framework/data/load_data.h"
#include "lacuna/framework/data/sparse/labelled_sparse_file.hpp"

namespace lacuna {

/// Sparse examples in memory. Batches: `inputs`, the values of the features, [size, most of the
/// batch], with 0 behind an example's own, and the integers `feature_ids` and `label_lists` of
/// config/sparse_examples.h. Nothing is ever dense.
class LabelledSparse final : public Dataset {
 public:
  explicit LabelledSparse(SparseExamples examples);

  int64_t size() const override { return examples_.size(); }
  /// [features].
  const Shape& example_shape() const override { return shape_; }
  int64_t num_classes() const override { return examples_.labels; }
  int64_t num_outputs() const override { return 0; }
  Batch gather(std::span<const int64_t> indices) const override;
  /// None: an example has any number of them.
  std::vector<int64_t> labels_of(std::span<const int64_t>) const override { return {}; }
  DataHash hash(int64_t examples, const HashLimits& limits) const override;

 private:
  SparseExamples examples_;
  Shape shape_;
};

/// Keys of `data` (in addition to those of load_data):
///
/// - `train` (required), `validation`, `test`: files (plain or .gz) as read_labelled_sparse reads
///   them. The last two may be numbers instead: then they hold out training examples, as in
///   load_data. Default: none.
///
/// *Errors:* DataError "file:line: …"; also when files have other numbers of features or labels
/// than the first.
DataSplits load_labelled_sparse(const Config& data, uint64_t seed);
DatasetType labelled_sparse_dataset();

}  // namespace lacuna
