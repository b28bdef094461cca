// The `labelled_text` dataset: sentences, each of a class.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "lacuna/framework/config/config.h"
#include "lacuna/framework/data/dataset.h"
#include "lacuna/framework/data/load_data.h"
#include "lacuna/framework/text/sentences.hpp"

namespace lacuna {

/// Sentences in memory, 4 bytes a token. Batches: `input_ids` and `attention_mask` (1 for a token,
/// 0 for padding), [size, the longest of the batch], padded with the tokenizer's [PAD], or 0;
/// where examples are pairs of sentences, `token_type_ids` (0 for padding) next to them; labels
/// [size].
class LabelledText final : public Dataset {
 public:
  /// No sentences yet; labels are to be in [0, num_classes). `class_names`: one for each class, or
  /// none. *Errors:* StateError without a tokenizer or unless max_length ≥ 1.
  LabelledText(std::shared_ptr<const Tokenizer> tokenizer, int64_t max_length, int64_t num_classes,
               std::vector<std::string> class_names = {});

  /// Adds one. *Errors:* StateError unless it has 1 to max_length tokens, and a label of a class.
  void add(std::span<const int64_t> ids, int64_t label);
  /// The same for two sentences. *Errors:* StateError if examples have one.
  void add_pair(const EncodedPair& pair, int64_t label);

  int64_t size() const override { return static_cast<int64_t>(labels_.size()); }
  /// [max_length], which is the same for all splits.
  const Shape& example_shape() const override { return shape_; }
  int64_t vocabulary_size() const override;
  std::shared_ptr<const Tokenizer> tokenizer() const override { return tokenizer_; }
  std::span<const int32_t> lengths() const override { return lengths_; }
  int64_t num_classes() const override { return num_classes_; }
  std::vector<std::string> class_names() const override { return class_names_; }
  int64_t num_outputs() const override { return 0; }
  Batch gather(std::span<const int64_t> indices) const override;
  std::vector<int64_t> labels_of(std::span<const int64_t> indices) const override;
  bool has_labels_at_hand() const override { return true; }
  DataHash hash(int64_t examples, const HashLimits& limits) const override;

 private:
  bool has_pairs() const { return !firsts_.empty(); }

  std::shared_ptr<const Tokenizer> tokenizer_;
  Shape shape_;
  int64_t num_classes_ = 0;
  int64_t padding_ = 0;
  std::vector<std::string> class_names_;
  std::vector<int32_t> ids_;
  std::vector<int64_t> begins_;  // in ids_
  std::vector<int32_t> lengths_;
  std::vector<int32_t> firsts_;  // of pairs: tokens of the first sentence
  std::vector<int64_t> labels_;
};

class SentenceFile;

/// The examples of a file, as LabelledText has them; with `is_streamed` their tokens are rebuilt
/// whenever they are asked for, and what is kept is 28 bytes an example, and the file. *Errors:*
/// DataError "file:line: …" on text that cannot be encoded, on an example without tokens, and on a
/// label that is no class.
std::shared_ptr<const Dataset> sentences_of(std::shared_ptr<const SentenceFile> file,
                                            const std::shared_ptr<const Tokenizer>& tokenizer,
                                            int64_t max_length, int64_t num_classes,
                                            bool is_streamed);

/// Keys of `data` (in addition to those of load_data):
///
/// - `train` (required), `validation`, `test`: files (plain or .gz). The last two may be numbers
///   instead: then they hold out training examples, as in load_data. Default: none.
/// - Each line is a label, a space or tab, and the sentence. A label is an integer, the name of a
///   class with a tab behind it, or "__label__" and a name, as fastText writes it. With
///   `text_column` and `label_column` (both or none) they are CSV files instead, whose first line
///   names the columns, or with `header: false` is an example: then columns are given by their
///   numbers. `delimiter` is what stands between fields, default ",". `text_column: [first,
///   second]` makes examples of two sentences, with `token_type_ids` next to them. Labels are
///   integers, or names if the first one is; classes are numbered in the order of their names.
/// - `class_names`: names of the classes in their order, where labels are integers from 0 or these
///   names; or a map from what stands in the files to the names.
/// - `tokenizer`: `words` (the default; those of the file `train`) | `characters` (of it too) |
///   `bytes` | `bpe` | `wordpiece`, and their keys, see read_tokenizer. `cls: true` puts a [CLS]
///   before the words; wordpiece has [CLS] and [SEP] always.
/// - `max_length`: most tokens of an example; what is beyond it is cut off. Default 128.
/// - `num_classes`: labels are integers below it. Default 0: one more than the largest in `train`,
///   or the number of names.
/// - `streamed`: whether text stays in its files, which must not change while they are used, and
///   becomes tokens when it is asked for; what comes of it is the same. Default: where the file
///   `train` is larger than a quarter of the memory that is left. Packed files cannot be.
/// - `mask_fraction`, `mask_token`: a masked language model's, as of `text`: tokens of the
/// sentences
///   are hidden and to be predicted (MaskedSentences), and the files' labels are not used.
///
/// *Errors:* DataError "file:line: …" on a line without a label or a sentence, on a label that is
/// no class, and on text that is not UTF-8 or not in the vocabulary; ConfigError on values out of
/// range. *Cost:* in memory 4 bytes a token and, while it is read, the text and 40 bytes an
/// example; streamed, 68 bytes an example, and its text is encoded once more in every epoch.
DataSplits load_labelled_text(const Config& data, uint64_t seed);
DatasetType labelled_text_dataset();

}  // namespace lacuna
