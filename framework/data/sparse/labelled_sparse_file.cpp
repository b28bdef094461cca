#include "lacuna/framework/data/sparse/labelled_sparse_file.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <limits>
#include <string_view>
#include <utility>

#include "lacuna/framework/core/error.h"
#include "lacuna/framework/core/input_checks.hpp"
#include "lacuna/framework/core/plural.hpp"
#include "lacuna/framework/data/formats/byte_reader.hpp"
#include "lacuna/framework/data/load_data.h"

namespace lacuna {
namespace {

constexpr size_t kPiece = size_t{1} << 20;
constexpr size_t kLongestLine = size_t{1} << 28;
constexpr int64_t kMostFeatures = std::numeric_limits<int32_t>::max();

// The lines of a file, of which a piece is in memory.
class SparseLines {
 public:
  explicit SparseLines(const std::string& path) : path_(path), reader_(path) {}

  // The next line without its end, or false at the end of the file.
  bool next(std::string_view& line) {
    size_t end = text_.find('\n', at_);
    while (end == std::string::npos && !is_at_end_) {
      const size_t seen = text_.size() - at_;
      if (seen > kLongestLine) fail("the line is longer than 256 MiB");
      read_piece();
      end = text_.find('\n', at_ + seen);
    }
    if (end == std::string::npos && at_ == text_.size()) return false;
    ++number_;
    const size_t stop = end == std::string::npos ? text_.size() : end;
    line = std::string_view(text_).substr(at_, stop - at_);
    if (line.ends_with('\r')) line.remove_suffix(1);
    at_ = end == std::string::npos ? stop : end + 1;
    return true;
  }

  int64_t number() const { return number_; }
  [[noreturn]] void fail(const std::string& what) const {
    throw DataError(fmt::format("{}:{}: {}", path_, std::max<int64_t>(number_, 1), what));
  }

 private:
  void read_piece() {
    text_.erase(0, std::exchange(at_, 0));
    const size_t begin = text_.size();
    text_.resize(begin + kPiece);
    const size_t count = reader_.read({reinterpret_cast<uint8_t*>(text_.data()) + begin, kPiece});
    text_.resize(begin + count);
    is_at_end_ = count < kPiece;
  }

  std::string path_;
  ByteReader reader_;
  std::string text_;
  size_t at_ = 0;
  int64_t number_ = 0;
  bool is_at_end_ = false;
};

class SparseReader {
 public:
  explicit SparseReader(const std::string& path) : path_(path), lines_(path) {}

  SparseExamples read() {
    read_sizes();
    std::string_view line;
    while (lines_.next(line)) {
      if (examples_.size() == wanted_) {
        require_blank(line);
        continue;
      }
      if (line.find_first_not_of(" \t") == std::string_view::npos) {
        lines_.fail("expected labels and features, found a blank line");
      }
      read_example(line);
      require_memory();
    }
    if (examples_.size() < wanted_) {
      throw DataError(fmt::format("{}: the first line declares {}, but the file has {}", path_,
                                  plural(wanted_, "example"), examples_.size()));
    }
    return std::move(examples_);
  }

 private:
  void read_sizes() {
    std::string_view line;
    if (!lines_.next(line)) throw DataError(path_ + ": the file is empty");
    if (line.starts_with("\xEF\xBB\xBF")) line.remove_prefix(3);
    int64_t sizes[3];
    bool are_sizes = true;
    for (int64_t& size : sizes) {
      are_sizes = are_sizes && parse(next_word(line), size) && size >= 1;
    }
    if (!are_sizes || !next_word(line).empty()) {
      lines_.fail(
          "expected the numbers of examples, features and labels, three numbers from 1 with spaces "
          "between them");
    }
    if (sizes[1] > kMostFeatures || sizes[2] > kMaxClasses) {
      lines_.fail(fmt::format("{} features and {} labels; at most {} and {} can be read", sizes[1],
                              sizes[2], kMostFeatures, kMaxClasses));
    }
    wanted_ = sizes[0];
    examples_.features = sizes[1];
    examples_.labels = sizes[2];
  }

  void require_blank(std::string_view line) const {
    if (line.find_first_not_of(" \t") == std::string_view::npos) return;
    lines_.fail(fmt::format("the first line declares {}, but this is one more",
                            plural(wanted_, "example")));
  }

  // Cuts the first word off the line; empty at its end.
  static std::string_view next_word(std::string_view& line) {
    const size_t begin = std::min(line.find_first_not_of(" \t"), line.size());
    const size_t end = std::min(line.find_first_of(" \t", begin), line.size());
    const std::string_view word = line.substr(begin, end - begin);
    line.remove_prefix(end);
    return word;
  }

  template <class Number>
  static bool parse(std::string_view text, Number& number) {
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
    return error == std::errc() && end == text.data() + text.size();
  }
  static bool parse(std::string_view text, float& number) {
    double value = 0.0;  // of which the smallest are 0 as a float
    if (!parse(text, value)) return false;
    const bool is_large = std::abs(value) > std::numeric_limits<float>::max();
    number = is_large ? std::numeric_limits<float>::infinity() : static_cast<float>(value);
    return true;
  }

  void read_example(std::string_view line) {
    labels_.clear();
    features_.clear();
    const bool has_labels = line.front() != ' ' && line.front() != '\t';
    bool is_first = true;
    for (std::string_view word = next_word(line); !word.empty(); word = next_word(line)) {
      const size_t colon = word.find(':');
      if (is_first && has_labels && colon == std::string_view::npos) {
        read_labels(word);
      } else {
        read_feature(word, colon);
      }
      is_first = false;
    }
    add_example();
  }

  void read_labels(std::string_view word) {
    while (true) {
      const size_t comma = word.find(',');
      const std::string_view text = word.substr(0, comma);
      int64_t label = -1;
      if (!parse(text, label)) {
        lines_.fail(fmt::format("expected labels with commas between them, found '{}'",
                                printable(text, 40)));
      }
      if (label < 0 || label >= examples_.labels) {
        lines_.fail(
            fmt::format("label {} is out of range: the first line declares {}, counted from 0",
                        label, plural(examples_.labels, "label")));
      }
      labels_.push_back(static_cast<int32_t>(label));
      if (comma == std::string_view::npos) return;
      word.remove_prefix(comma + 1);
    }
  }

  void read_feature(std::string_view word, size_t colon) {
    int64_t id = -1;
    float value = 0.0f;
    if (colon == std::string_view::npos || !parse(word.substr(0, colon), id) ||
        !parse(word.substr(colon + 1), value)) {
      lines_.fail(fmt::format("expected a feature as id:value, found '{}'", printable(word, 40)));
    }
    if (id < 0 || id >= examples_.features) {
      lines_.fail(
          fmt::format("feature {} is out of range: the first line declares {}, counted from 0", id,
                      plural(examples_.features, "feature")));
    }
    if (!std::isfinite(value)) {
      lines_.fail(fmt::format("the value of feature {} is not a finite number", id));
    }
    features_.emplace_back(static_cast<int32_t>(id), value);
  }

  void add_example() {
    std::ranges::sort(labels_);
    std::ranges::sort(features_, {}, &std::pair<int32_t, float>::first);
    const auto label = std::ranges::adjacent_find(labels_);
    if (label != labels_.end()) lines_.fail(fmt::format("label {} appears twice", *label));
    const auto feature =
        std::ranges::adjacent_find(features_, {}, &std::pair<int32_t, float>::first);
    if (feature != features_.end()) {
      lines_.fail(fmt::format("feature {} appears twice", feature->first));
    }
    examples_.label_ids.insert(examples_.label_ids.end(), labels_.begin(), labels_.end());
    for (const auto& [id, value] : features_) {
      examples_.feature_ids.push_back(id);
      examples_.values.push_back(value);
    }
    examples_.feature_begin.push_back(static_cast<int64_t>(examples_.feature_ids.size()));
    examples_.label_begin.push_back(static_cast<int64_t>(examples_.label_ids.size()));
  }

  // A growing array may take as much again as it has.
  void require_memory() {
    constexpr size_t kAsk = size_t{1} << 22;
    const size_t held = examples_.feature_ids.size() + examples_.label_ids.size() +
                        2 * static_cast<size_t>(examples_.size());
    if (held < asked_ + kAsk) return;
    asked_ = held;
    if (static_cast<int64_t>(8 * held) > available_memory()) {
      throw DataError(path_ + ": the examples are larger than the free memory");
    }
  }

  std::string path_;
  SparseLines lines_;
  SparseExamples examples_;
  int64_t wanted_ = 0;
  size_t asked_ = 0;
  std::vector<int32_t> labels_;                      // of one example
  std::vector<std::pair<int32_t, float>> features_;  // of one example
};

}  // namespace

SparseExamples read_labelled_sparse(const std::string& path) { return SparseReader(path).read(); }

}  // namespace lacuna
