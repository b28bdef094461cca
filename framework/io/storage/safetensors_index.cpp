#include "lacuna/framework/io/storage/safetensors_index.hpp"

#include <fmt/core.h>

#include <nlohmann/json.hpp>
#include <set>

#include "lacuna/framework/core/error.h"
#include "lacuna/framework/core/input_checks.hpp"

namespace lacuna {
namespace {

using Json = nlohmann::json;

constexpr const char* kMap = "weight_map";

// A path that leads anywhere else could name any file of the machine.
void require_file_name(const std::string& tensor, const std::string& file) {
  const bool is_name = file.find_first_of(std::string_view("/\\\0", 3)) == std::string::npos &&
                       file.size() > std::string_view(".safetensors").size() &&
                       file.ends_with(".safetensors");
  if (is_name) return;
  throw DataError(
      fmt::format("the tensor '{}' would be in '{}'; expected the name of a .safetensors file next "
                  "to the index",
                  printable(tensor), printable(file)));
}

// Takes the JSON as it is read: a tree of it would keep one of two equal keys without an error.
class IndexReader final : public nlohmann::json_sax<Json> {
 public:
  std::map<std::string, std::string> take() {
    if (!has_map_) throw DataError(fmt::format("there is no '{}' in it", kMap));
    return std::move(files_);
  }

  bool null() override { return value("null"); }
  bool boolean(bool) override { return value("true or false"); }
  bool number_integer(number_integer_t) override { return value("a number"); }
  bool number_unsigned(number_unsigned_t) override { return value("a number"); }
  bool number_float(number_float_t, const string_t&) override { return value("a number"); }
  bool binary(binary_t&) override { return value("bytes"); }

  bool string(string_t& text) override {
    if (depth_ != 2 || !is_in_map_) return value("text");
    require_file_name(key_, text);
    if (!files_.emplace(key_, text).second) {
      throw DataError(fmt::format("the tensor '{}' appears twice", printable(key_)));
    }
    names_.insert(text);
    if (names_.size() > kMostShards) {
      throw DataError(fmt::format("it names more than {} files", kMostShards));
    }
    return true;
  }

  bool start_object(std::size_t) override {
    if (depth_ == 1 && key_ == kMap) {
      if (has_map_) throw DataError(fmt::format("'{}' appears twice", kMap));
      has_map_ = is_in_map_ = true;
    } else {
      value("an object");
    }
    ++depth_;
    return true;
  }
  bool end_object() override {
    if (--depth_ == 1) is_in_map_ = false;
    return true;
  }
  bool start_array(std::size_t) override {
    value("a list");
    ++depth_;
    return true;
  }
  bool end_array() override {
    --depth_;
    return true;
  }

  bool key(string_t& key) override {
    key_ = key;
    return true;
  }

  bool parse_error(std::size_t position, const std::string&,
                   const nlohmann::detail::exception& error) override {
    const std::string text = error.what();  // "[json.exception.parse_error.101] parse error at …"
    const size_t reason = text.find("] ");
    throw DataError(
        fmt::format("it is not JSON (at byte {}): {}", position,
                    printable(reason == std::string::npos ? text : text.substr(reason + 2))));
  }

 private:
  // Anything but what is looked for: passed over, unless it stands in its place.
  bool value(const char* found) {
    if (depth_ == 0 && found != std::string_view("an object")) {
      throw DataError(fmt::format("expected an object, found {}", found));
    }
    if (depth_ == 1 && key_ == kMap) {
      throw DataError(fmt::format("'{}': expected an object, found {}", kMap, found));
    }
    if (depth_ == 2 && is_in_map_) {
      throw DataError(fmt::format("the tensor '{}': expected the name of its file, found {}",
                                  printable(key_), found));
    }
    return true;
  }

  std::map<std::string, std::string> files_;
  std::set<std::string> names_;  // of files
  std::string key_;              // the last one read
  size_t depth_ = 0;             // of objects and lists that are open
  bool has_map_ = false, is_in_map_ = false;
};

}  // namespace

std::map<std::string, std::string> parse_safetensors_index(std::string_view text) {
  // The library takes a zero byte for the end.
  if (text.find('\0') != std::string_view::npos) {
    throw DataError("it is not JSON: there is a zero byte in it");
  }
  IndexReader reader;
  Json::sax_parse(text.begin(), text.end(), &reader);
  return reader.take();
}

}  // namespace lacuna
