// Datasets: examples that return normalized batches. load_data.h makes those that a configuration
// names; some, as mnist.h, cifar.h, csv.h and glyphs.h, can be made by themselves.
#pragma once

#include <cstdint>
#include <limits>
#include <memory>
#include <span>
#include <string>
#include <variant>
#include <vector>

#include "lacuna/framework/config/named_tensors.h"
#include "lacuna/framework/core/shape.h"
#include "lacuna/framework/core/tensor.h"
#include "lacuna/framework/data/hashes/data_hash.h"

namespace lacuna {

class Tokenizer;

/// The kind of answer that a model learns from the examples.
enum class Task {
  Classification,  ///< one label each, an integer from 0
  Regression,      ///< one or more target values each
  None,            ///< nothing: inputs alone, to predict from
};

/// The meaning of a label for its token, if each token of an example may have one.
enum class TokenLabel {
  None,    ///< nothing: examples have labels, tokens have none (or it is not known)
  Next,    ///< which token follows: a model must not see it
  Hidden,  ///< which one was there before it was hidden
};

/// Some examples, ready for a model.
struct Batch {
  Tensor inputs;       ///< [size, …example shape], row-major, normalized; undefined for tokens
  IndexTensor labels;  ///< [size], classes from 0; undefined unless classification. Where each
                       ///< token has one, [size, length], kIgnoredLabel for those that do not count
  Tensor targets;      ///< [size, outputs]; undefined unless regression
  int64_t size = 0;
  /// For tokens: `input_ids`, the model's input, and the integers that belong to them, [size,
  /// length] each. If examples are padded to the longest, the length may differ from batch to
  /// batch.
  NamedTensors named = {};
  /// If examples were mixed with others (mixup) and have labels: the labels of the others, [size],
  /// and the share of each example's own label, in [½, 1]. Otherwise undefined and empty; targets
  /// are mixed directly.
  IndexTensor other_labels = {};
  std::vector<float> own_shares = {};
};

/// Examples that any thread may gather from at any time: nothing in a dataset changes. A user's
/// dataset overrides these functions and is registered in load_data.h.
class Dataset {
 public:
  virtual ~Dataset() = default;

  virtual int64_t size() const = 0;
  /// Shape of one input: [rows, columns] or [channels, rows, columns] for images, [features] for
  /// tables, [length] for tokens (the largest length where it differs).
  virtual const Shape& example_shape() const = 0;
  /// Ids that an input's tokens may have, from 0; 0 unless the inputs are tokens.
  virtual int64_t vocabulary_size() const { return 0; }
  /// The tokenizer that made the tokens; null if none did.
  virtual std::shared_ptr<const Tokenizer> tokenizer() const { return nullptr; }
  /// The number of tokens of each example if it differs; empty if all have the same. The loader
  /// puts examples of similar length into one batch.
  virtual std::span<const int32_t> lengths() const { return {}; }
  /// Number of classes; 0 unless this is classification.
  virtual int64_t num_classes() const = 0;
  /// Values in one regression target; 0 unless this is regression.
  virtual int64_t num_outputs() const = 0;
  /// Mean number of characters of text per label, if labels are the text's next tokens (bytes, if
  /// tokens are bytes); 0 otherwise, and if unknown.
  virtual double characters_per_label() const { return 0.0; }
  /// Fraction of the labels that are [UNK], if the characters of a label are known and there is
  /// such a token; otherwise NaN.
  virtual double unknown_labels() const { return std::numeric_limits<double>::quiet_NaN(); }
  /// The meaning of the labels of tokens.
  virtual TokenLabel token_label() const { return TokenLabel::None; }
  /// Names of the classes, in the order of their labels; empty if there are none.
  virtual std::vector<std::string> class_names() const { return {}; }
  /// The examples at `indices`, in that order; an index may occur more than once.
  /// *Errors:* StateError on an index outside of [0, size()).
  virtual Batch gather(std::span<const int64_t> indices) const = 0;
  /// The same examples as training draws them in an epoch: a dataset may change them at random, as
  /// a pure function of seed, epoch and index. Default: gather.
  virtual Batch gather_for_training(std::span<const int64_t> indices, uint64_t /*seed*/,
                                    uint64_t /*epoch*/) const {
    return gather(indices);
  }
  /// Labels of the examples at `indices`, if each example has one: the labels of gather(), which
  /// the default calls, without the inputs. *Errors:* as gather.
  virtual std::vector<int64_t> labels_of(std::span<const int64_t> indices) const;
  /// Whether labels_of is as cheap as reading an array. Checks of all labels are left out
  /// otherwise.
  virtual bool has_labels_at_hand() const { return false; }
  /// Whether a loader may gather batches ahead in a thread of its own. False for examples that a
  /// program in Python computes: these come in the thread that asks for a batch.
  virtual bool may_prefetch() const { return true; }
  /// A hash of the first `examples` as they are stored, before normalization. By default of the
  /// result of gather(); beyond the limit, of examples at even distances. *Requires* 1 ≤ examples ≤
  /// size().
  virtual DataHash hash(int64_t examples, const HashLimits& limits) const;
};

/// Each input becomes (input − mean) / std. Mean and std have one value for all features, or one
/// per channel of examples [channels, rows, columns], or (float inputs) one per feature. Inputs
/// stored as bytes are divided by 255 first.
struct Normalization {
  std::vector<double> mean{0.0};
  std::vector<double> std{1.0};
  friend bool operator==(const Normalization&, const Normalization&) = default;
};

/// The arrays that an ArrayDataset is made of, as they were read.
struct Examples {
  Shape example_shape;
  /// [n, …example shape], row-major: bytes for images (0 to 255), else floats.
  std::variant<std::vector<uint8_t>, std::vector<float>> inputs;
  std::vector<int64_t> labels = {};  ///< [n], classification: in [0, num_classes)
  int64_t num_classes = 0;
  std::vector<float> targets = {};  ///< [n, num_outputs], row-major, regression
  int64_t num_outputs = 0;
  std::vector<std::string> class_names = {};  ///< one per class, or none

  bool has_byte_inputs() const { return inputs.index() == 0; }
  /// The number of examples in `inputs`.
  int64_t size() const;
};

/// A byte b of an image is b · scale + offset as an input.
struct ByteScale {
  float scale = 1.0f;
  float offset = 0.0f;
};

/// The dataset that holds its examples as arrays. Images stay bytes and become floats while they
/// are gathered: a quarter of the memory, and of what a random access reads.
class ArrayDataset final : public Dataset {
 public:
  /// *Errors:* DataError if the arrays' sizes do not match, or a label is not a class.
  explicit ArrayDataset(Examples examples);

  int64_t size() const override { return size_; }
  const Shape& example_shape() const override { return examples_->example_shape; }
  int64_t num_classes() const override { return examples_->num_classes; }
  int64_t num_outputs() const override { return examples_->num_outputs; }
  std::vector<std::string> class_names() const override { return examples_->class_names; }
  /// *Cost:* one product and one addition per value, on the calling thread.
  Batch gather(std::span<const int64_t> indices) const override;
  std::vector<int64_t> labels_of(std::span<const int64_t> indices) const override;
  bool has_labels_at_hand() const override { return true; }
  DataHash hash(int64_t examples, const HashLimits& limits) const override;

  const Examples& examples() const { return *examples_; }
  const Normalization& normalization() const { return normalization_; }
  /// One for each channel; none if inputs are not bytes.
  std::vector<ByteScale> byte_scales() const;

  /// A dataset of these examples (shared, not copied) under another normalization.
  /// *Errors:* DataError unless mean and std have as many values as a Normalization may, all finite
  /// and std above 0.
  std::shared_ptr<const ArrayDataset> normalized(Normalization normalization) const;

  /// Mean and standard deviation of the examples at `indices`: per feature, or for byte inputs
  /// (after the division by 255) per channel, which is over all pixels where there is one. The std
  /// of a constant feature (0, or within the rounding of float32) becomes 1, so that it gives 0 and
  /// stays finite. Sums are in double precision.
  Normalization standard_normalization(std::span<const int64_t> indices) const;

 private:
  ArrayDataset(std::shared_ptr<const Examples> examples, Normalization normalization);
  void gather_bytes(std::span<const int64_t> indices, float* out) const;
  void gather_floats(std::span<const int64_t> indices, float* out) const;

  std::shared_ptr<const Examples> examples_;
  Normalization normalization_;
  int64_t size_ = 0;
  std::vector<float> byte_scales_,
      byte_offsets_;                         // byte inputs, per channel: byte * scale + offset
  std::vector<float> means_, inverse_stds_;  // float inputs: one per feature
};

/// The examples of `dataset` at `indices`, in that order.
/// *Errors:* StateError on an index outside of the dataset.
std::shared_ptr<const Dataset> subset(std::shared_ptr<const Dataset> dataset,
                                      std::vector<int64_t> indices);

}  // namespace lacuna
