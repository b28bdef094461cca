// CsvRecords: the text of a CSV file cut into records of fields, each of which knows its position.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace lacuna {

/// The most fields that a line may have: each takes 40 bytes while its line is read.
inline constexpr size_t kMostCsvFields = size_t{1} << 19;

/// A field of the text, without its quotes; its position counts from 1, in bytes.
struct CsvField {
  std::string_view text;
  int64_t line = 0;
  int64_t column = 0;
  bool is_quoted = false;  ///< then `text` has two quotes for each that it means (unescaped)
};

/// Reads records one after the other. *Source:* RFC 4180, with LF or CRLF, blank lines at the end
/// and a UTF-8 byte order mark accepted.
class CsvRecords {
 public:
  /// `path` is for messages. *Lifetime:* the text must outlive this and the fields.
  CsvRecords(std::string path, std::string_view text, char delimiter);

  /// Puts the fields of the next record into `fields`, or returns false at the end of the text.
  /// *Errors:* DataError with the position on more than kMostCsvFields fields, on a quote that is
  /// not closed, or that is followed by more of the field.
  bool next(std::vector<CsvField>& fields);

  /// Throws DataError: "file:line:column: what".
  [[noreturn]] void fail(const CsvField& field, const std::string& what) const;

 private:
  CsvField field();
  std::string_view quoted(const CsvField& field);
  bool skip_delimiter();

  std::string path_;
  std::string_view text_;
  char delimiter_;
  size_t at_ = 0, line_begin_ = 0;
  int64_t line_ = 1;
};

/// The text that a field means: each doubled quote of a quoted field is made single. Elsewhere,
/// quotes are text as they stand.
std::string unescaped(const CsvField& field);

}  // namespace lacuna
