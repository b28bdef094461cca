// SentenceFile: the sentences of a file and their labels, a line or a CSV record for each.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "lacuna/framework/data/formats/mapped_file.hpp"
#include "lacuna/framework/data/formats/sentence_columns.hpp"

namespace lacuna {

class CsvRecords;
class SentenceLabels;
enum class LabelText;

/// Where a file's text is while its sentences are in use.
enum class TextPlace { InMemory, OnDisk };

/// Examples of a sentence, or of two, and a label each: an integer, or the name of a class. Names
/// are taken in tables, in lines where a tab is behind them, and as fastText writes them
/// ("__label__name" and a space). It never changes, and any thread may use it. *Cost:* 40 bytes an
/// example, and the text, which on disk is looked at where it lies.
class SentenceFile {
 public:
  /// *Errors:* DataError "file:line: …" on a line or record without a label or a sentence, and on a
  /// label that is none; DataError with the path when the file cannot be read, has no sentences or
  /// no such column, and when it is packed (.gz) and to stay on the disk.
  SentenceFile(const std::string& path, const SentenceColumns& columns, TextPlace place);
  /// The same of a text; `name` is for messages.
  SentenceFile(const std::string& name, std::string text, const SentenceColumns& columns);

  SentenceFile(const SentenceFile&) = delete;
  SentenceFile& operator=(const SentenceFile&) = delete;

  int64_t size() const { return static_cast<int64_t>(rows_.size()); }
  /// Whether examples are of two sentences.
  bool has_pairs() const { return columns_.texts.size() > 1; }
  bool has_labels() const { return has_labels_; }
  int64_t label(int64_t index) const { return row(index).label; }
  int64_t largest_label() const;
  /// Where labels are names: those of the classes, in the order of their labels.
  const std::vector<std::string>& class_names() const { return class_names_; }
  /// *Errors:* DataError where labels are names, and the known classes have none.
  void require_classes(const std::vector<std::string>& known) const;
  /// A sentence, or two, as they are between quotes.
  std::vector<std::string> texts(int64_t index) const;
  /// "file:line", for messages.
  std::string place(int64_t index) const;

 private:
  struct Part {
    size_t begin = 0;
    uint32_t size = 0;
  };
  struct Row {
    Part first, second;
    int32_t label = 0;
    uint32_t line = 0;
  };

  void read();
  const Row& row(int64_t index) const { return rows_[static_cast<size_t>(index)]; }
  Part part(std::string_view text, std::string_view piece, int64_t line) const;
  LabelText kind_of_label() const;  // of one without quotes that may be a name
  void read_lines(std::string_view text, SentenceLabels& labels);
  void read_table(std::string_view text, SentenceLabels& labels);
  void find_columns(CsvRecords& records);
  std::string text_of(const Part& part) const;
  std::string place_of_line(int64_t line) const;

  std::string path_;
  SentenceColumns columns_;
  std::string held_;                          // the text, in memory
  std::unique_ptr<const MappedFile> mapped_;  // or on the disk
  std::string_view text_;
  std::vector<Row> rows_;
  size_t width_ = 0, label_at_ = 0;  // of a table, with
  std::vector<size_t> text_at_;
  std::vector<std::string> class_names_;
  bool has_labels_ = true;
};

}  // namespace lacuna
