// Records of small tables, held against a parser that is written by the rules of RFC 4180 alone,
// one character at a time.
#include "lacuna/framework/data/formats/csv_records.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "lacuna/framework/core/error.h"
#include "lacuna/framework/data/formats/sentence_file.hpp"
#include "lacuna/framework/data/types/csv.h"
#include "temporary_folder.h"

namespace lacuna::csv_records_test {
namespace {

struct Cell {
  std::string text;
  bool is_quoted = false;
  int64_t line = 0;
  bool operator==(const Cell&) const = default;
};
using Records = std::vector<std::vector<Cell>>;

// Characters that end a line here: LF, CRLF, or a CR at the end of the text.
size_t line_end(const std::string& text, size_t at) {
  if (text[at] == '\n') return 1;
  if (text[at] != '\r') return 0;
  if (at + 1 == text.size()) return 1;
  return text[at + 1] == '\n' ? 2 : 0;
}

// Nothing of a text that the rules refuse. Blank lines at the end are no records.
std::optional<Records> records_by_rule(const std::string& text, char delimiter) {
  Records records;
  size_t at = 0;
  int64_t line = 1;
  while (text.find_first_not_of("\r\n", at) != std::string::npos) {
    std::vector<Cell>& record = records.emplace_back();
    for (bool has_more = true; has_more;) {
      Cell& cell = record.emplace_back(Cell{.text = "", .line = line});
      if (at < text.size() && text[at] == '"') {
        cell.is_quoted = true;
        bool is_open = true;
        for (++at; is_open && at < text.size(); ++at) {
          if (text[at] == '"' && at + 1 < text.size() && text[at + 1] == '"')
            ++at;
          else if (text[at] == '"')
            is_open = false;
          if (is_open) cell.text += text[at];
          if (text[at] == '\n') ++line;
        }
        if (is_open) return std::nullopt;
      } else {
        while (at < text.size() && text[at] != delimiter && line_end(text, at) == 0) {
          cell.text += text[at++];
        }
      }
      has_more = at < text.size() && text[at] == delimiter;
      if (has_more) ++at;
    }
    if (at == text.size()) break;
    const size_t end = line_end(text, at);
    if (end == 0) return std::nullopt;  // more of a field behind its quotes
    at += end;
    ++line;
  }
  return records;
}

std::optional<Records> records_of(const std::string& text, char delimiter) {
  Records records;
  try {
    CsvRecords reader("t.csv", text, delimiter);
    for (std::vector<CsvField> fields; reader.next(fields);) {
      std::vector<Cell>& record = records.emplace_back();
      for (const CsvField& field : fields) {
        record.push_back({unescaped(field), field.is_quoted, field.line});
      }
    }
  } catch (const DataError&) {
    return std::nullopt;
  }
  return records;
}

std::string shown(const std::string& text) {
  std::string all;
  for (const char c : text) {
    all += c == '\n' ? "\\n" : c == '\r' ? "\\r" : c == '\t' ? "\\t" : std::string(1, c);
  }
  return all;
}

constexpr std::string_view kAlphabet = "a\",;\t \r\n";

// The text of a number in base 8, or a drawn one.
std::string text_of(int number, int length) {
  std::string text;
  for (int i = 0; i < length; ++i, number /= 8) text += kAlphabet[static_cast<size_t>(number % 8)];
  return text;
}
std::string drawn_text(std::mt19937& rng, size_t longest, std::string_view alphabet) {
  std::string text(rng() % (longest + 1), ' ');
  for (char& c : text) c = alphabet[rng() % alphabet.size()];
  return text;
}

TEST(CsvRecords, OfAllShortTextsFollowTheRules) {
  int accepted = 0;
  for (int length = 0, count = 1; length <= 5; ++length, count *= 8) {
    for (int number = 0; number < count; ++number) {
      const std::string text = text_of(number, length);
      for (const char delimiter : {',', ';', '\t'}) {
        const std::optional<Records> expected = records_by_rule(text, delimiter);
        ASSERT_EQ(records_of(text, delimiter) == expected, true) << shown(text);
        accepted += expected ? 1 : 0;
      }
    }
  }
  EXPECT_GT(accepted, 50'000);
}

TEST(CsvRecords, OfDrawnTextsFollowTheRules) {
  std::mt19937 rng(1);
  for (int i = 0; i < 20'000; ++i) {
    const std::string text = drawn_text(rng, 40, kAlphabet);
    ASSERT_EQ(records_of(text, ',') == records_by_rule(text, ','), true) << shown(text);
  }
}

// A field as a table has it: between quotes where it must be, or where that is drawn.
std::string written(const std::string& text, bool is_quoted) {
  const bool must = text.starts_with('"') || text.find_first_of(",\n") != std::string::npos;
  if (!must && !is_quoted) return text;
  std::string all = "\"";
  for (const char c : text) all += c == '"' ? "\"\"" : std::string(1, c);
  return all + "\"";
}

TEST(CsvRecords, KeepTheQuotesOfSentences) {
  std::mt19937 rng(2);
  std::string table;
  std::vector<std::string> sentences = {"say \"\"hi\"\"", "\"\"", "", "a\"b"};
  while (sentences.size() < 2000) sentences.push_back(drawn_text(rng, 8, kAlphabet));
  for (const std::string& text : sentences) table += written(text, rng() % 2 == 0) + ",0\n";
  const TemporaryFolder folder;
  const std::string path = folder.write("t.csv", table);
  const SentenceColumns columns{.texts = {"0"}, .label = "1", .has_header = false, .num_labels = 2};
  for (const TextPlace place : {TextPlace::InMemory, TextPlace::OnDisk}) {
    const SentenceFile file(path, columns, place);
    ASSERT_EQ(file.size(), static_cast<int64_t>(sentences.size()));
    for (int64_t i = 0; i < file.size(); ++i) {
      ASSERT_EQ(file.texts(i).front(), sentences[static_cast<size_t>(i)]) << i;
    }
  }
}

TEST(CsvRecords, KeepTheQuotesOfClassesAndColumns) {
  std::mt19937 rng(3);
  std::string table = "a\"\"b,\"c\"\"d\"\n";
  std::vector<std::string> names;
  for (int i = 0; i < 2000; ++i) {
    const std::string name = "x" + drawn_text(rng, 6, kAlphabet) + "x";
    names.push_back(name);
    table += "1," + written(name, rng() % 2 == 0) + "\n";
  }
  const CsvTable read = read_csv_text("t.csv", table, {});
  EXPECT_EQ(read.columns, (std::vector<std::string>{"a\"\"b", "c\"d"}));
  for (size_t i = 0; i < names.size(); ++i) {
    const auto label = static_cast<size_t>(read.examples.labels[i]);
    ASSERT_EQ(read.examples.class_names[label], names[i]) << shown(names[i]);
  }
  std::ranges::sort(names);
  names.erase(std::unique(names.begin(), names.end()), names.end());
  EXPECT_EQ(read.examples.class_names, names);
}

}  // namespace
}  // namespace lacuna::csv_records_test
