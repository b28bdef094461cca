// CsvWriter: the table of predictions.
#pragma once

#include <cstdint>
#include <cstdio>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "lacuna/framework/io/storage/file_system.hpp"

namespace lacuna {

/// Written next to the file and put in its place when it is whole. What is there and no file (a
/// link, a pipe, a device such as /dev/stdout) must not be replaced, and is written to. "-" is the
/// standard output.
class CsvWriter {
 public:
  /// Classes are written by these names, or by their numbers where there are none. *Errors:*
  /// StateError when the file cannot be written.
  explicit CsvWriter(const std::string& path, std::vector<std::string> class_names = {});
  ~CsvWriter();
  CsvWriter(const CsvWriter&) = delete;
  CsvWriter& operator=(const CsvWriter&) = delete;

  /// A first column of the files that the examples are from, before the header and each row.
  void file_header();
  void file_field(const std::string& file);

  /// `class`, and a column for each class: `p_NAME`, or `p0`, `p1`, … where there are no names.
  void class_header(int64_t classes);
  /// The class with the largest logit, and the softmax of the logits.
  void class_row(const float* logits, int64_t classes, int64_t best);

  /// Probabilities of decisions that are independent of each other; of a single one as of two
  /// classes.
  void decision_header(int64_t decisions);
  void decision_row(const float* logits, int64_t decisions);

  void value_header(int64_t outputs);
  void value_row(const float* values, int64_t outputs);

  /// The classes with the largest logits, and these: `class1`, `logit1`, `class2`, … Classes are
  /// numbers; both are empty for −1, where there are fewer.
  void top_header(int64_t count);
  void top_row(std::span<const int64_t> classes, std::span<const float> logits);

  /// Tokens in the place of masks: the line that has it, the number of the mask in it, the token,
  /// in quotes, and its probability.
  void token_header();
  void token_row(int64_t line, int64_t mask, std::string_view token, double probability);

  /// *Errors:* StateError when not everything could be written.
  void close();

 private:
  bool is_standard_output() const { return path_ == "-"; }
  [[noreturn]] void fail() const;

  std::string path_;
  std::vector<std::string> class_names_;
  std::optional<FileReplacement> replacement_;
  std::FILE* file_ = nullptr;
};

/// The softmax of logits, of one of them. Stable for any finite ones.
double probability_of(const float* logits, int64_t classes, int64_t chosen, int64_t largest);

}  // namespace lacuna
