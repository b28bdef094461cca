#include "lacuna/framework/data/formats/csv_records.hpp"

#include <fmt/core.h>

#include <utility>

#include "lacuna/framework/core/error.h"

namespace lacuna {

CsvRecords::CsvRecords(std::string path, std::string_view text, char delimiter)
    : path_(std::move(path)), text_(text), delimiter_(delimiter) {
  if (text_.starts_with("\xEF\xBB\xBF")) text_.remove_prefix(3);
}

bool CsvRecords::next(std::vector<CsvField>& fields) {
  if (text_.find_first_not_of("\r\n", at_) == std::string_view::npos) return false;
  fields.clear();
  do {
    fields.push_back(field());
    if (fields.size() > kMostCsvFields) {
      fail(fields.front(), fmt::format("the line has more than {} fields", kMostCsvFields));
    }
  } while (skip_delimiter());
  return true;
}

void CsvRecords::fail(const CsvField& field, const std::string& what) const {
  throw DataError(fmt::format("{}:{}:{}: {}", path_, field.line, field.column, what));
}

CsvField CsvRecords::field() {
  CsvField field{{}, line_, static_cast<int64_t>(at_ - line_begin_) + 1};
  if (at_ < text_.size() && text_[at_] == '"') {
    field.is_quoted = true;
    field.text = quoted(field);
  } else {
    const size_t begin = at_;
    while (at_ < text_.size() && text_[at_] != delimiter_ && text_[at_] != '\n') ++at_;
    field.text = text_.substr(begin, at_ - begin);
    const bool ends_line = at_ == text_.size() || text_[at_] == '\n';
    if (ends_line && field.text.ends_with('\r')) field.text.remove_suffix(1);
  }
  return field;
}

// The text up to the closing quote, which must be followed by a delimiter or the line's end.
std::string_view CsvRecords::quoted(const CsvField& field) {
  const size_t begin = ++at_;
  while (true) {
    if (at_ == text_.size()) fail(field, "a quote is opened here and never closed");
    if (text_[at_] == '\n') {
      ++line_;
      line_begin_ = at_ + 1;
    }
    if (text_[at_] != '"') {
      ++at_;
    } else if (at_ + 1 < text_.size() && text_[at_ + 1] == '"') {
      at_ += 2;
    } else {
      break;
    }
  }
  const std::string_view inside = text_.substr(begin, at_ - begin);
  ++at_;
  const bool is_crlf = text_.substr(at_, 2) == "\r\n" || text_.substr(at_) == "\r";
  if (is_crlf) ++at_;
  if (at_ < text_.size() && text_[at_] != delimiter_ && text_[at_] != '\n') {
    fail(field, "expected a delimiter or the end of the line after the closing quote");
  }
  return inside;
}

// Steps over the delimiter (true) or the end of the line or text (false).
bool CsvRecords::skip_delimiter() {
  if (at_ == text_.size()) return false;
  if (text_[at_++] == delimiter_) return true;
  ++line_;
  line_begin_ = at_;
  return false;
}

std::string unescaped(const CsvField& field) {
  const std::string_view text = field.text;
  if (!field.is_quoted) return std::string(text);
  std::string plain;
  for (size_t i = 0; i < text.size(); ++i) {
    plain += text[i];
    if (text.substr(i, 2) == "\"\"") ++i;
  }
  return plain;
}

}  // namespace lacuna
