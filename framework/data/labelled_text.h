// The `labelled_text` dataset: sentences, each of a class.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "lacuna/framework/core/config.h"
#include "lacuna/framework/data/dataset.h"
#include "lacuna/framework/data/load_data.h"

namespace lacuna {

/// A sentence as a model is given it: its tokens between the tokenizer's [CLS] and [SEP], where it
/// has those, cut off so that there are at most `max_length`, [CLS] and [SEP] among them.
/// Characters and bytes have neither. *Errors:* as Tokenizer::encode; StateError when `max_length`
/// leaves no room for a token of the sentence.
std::vector<int64_t> encode_example(const Tokenizer& tokenizer, std::string_view sentence,
                                    int64_t max_length);

/// Sentences in memory, 4 bytes a token. Batches: `input_ids` and `attention_mask` (1 for a token,
/// 0 for padding), [size, the longest of the batch], padded with the tokenizer's [PAD], or 0;
/// labels [size].
class LabelledText final : public Dataset {
 public:
  /// No sentences yet; labels are to be in [0, num_classes). *Errors:* StateError without a
  /// tokenizer or unless max_length ≥ 1.
  LabelledText(std::shared_ptr<const Tokenizer> tokenizer, int64_t max_length, int64_t num_classes);

  /// Adds one. *Errors:* StateError unless it has 1 to max_length tokens, and a label of a class.
  void add(std::span<const int64_t> ids, int64_t label);

  int64_t size() const override { return static_cast<int64_t>(labels_.size()); }
  /// [max_length], which is the same for all splits.
  const Shape& example_shape() const override { return shape_; }
  int64_t vocabulary_size() const override;
  std::shared_ptr<const Tokenizer> tokenizer() const override { return tokenizer_; }
  std::span<const int32_t> lengths() const override { return lengths_; }
  int64_t num_classes() const override { return num_classes_; }
  int64_t num_outputs() const override { return 0; }
  Batch gather(std::span<const int64_t> indices) const override;

 private:
  std::shared_ptr<const Tokenizer> tokenizer_;
  Shape shape_;
  int64_t num_classes_ = 0;
  int64_t padding_ = 0;
  std::vector<int32_t> ids_;
  std::vector<int64_t> begins_;  // in ids_
  std::vector<int32_t> lengths_;
  std::vector<int64_t> labels_;
};

/// Keys of `data` (besides those of load_data):
///
/// - `train` (required), `validation`, `test`: files (plain or .gz). `validation` may be a number
///   instead: then it holds out training examples, as in load_data. Default: none.
/// - Each line is a label, a space or tab, and the sentence. With `text_column` and `label_column`
///   (both or none) they are CSV files instead, whose first line names the columns; `delimiter`
///   is what stands between fields, default ",".
/// - `tokenizer`: `words` (the default; those of the file `train`) | `characters` (of it too) |
///   `bytes` | `bpe` | `wordpiece`, and their keys, see read_tokenizer. `cls: true` puts a [CLS]
///   before the words; wordpiece has [CLS] and [SEP] always.
/// - `max_length`: most tokens of an example; what is beyond it is cut off. Default 128.
/// - `num_classes`: labels are integers below it. Default 0: one more than the largest in `train`.
/// - `mask_fraction`, `mask_token`: a masked language model's, as of `text`: tokens of the
/// sentences
///   are hidden and to be told (MaskedSentences), and the files' labels say nothing.
///
/// *Errors:* DataError "file:line: …" on a line without a label or a sentence, on a label that is
/// no class, and on text that is not UTF-8 or not in the vocabulary; ConfigError on values out of
/// range. *Cost:* 4 bytes a token in memory.
DataSplits load_labelled_text(const Config& data, uint64_t seed);
/// The other splits alone, which are files (load_held_out).
DataSplits load_labelled_text_held_out(const Config& data, uint64_t seed, const KnownData& known);

}  // namespace lacuna
