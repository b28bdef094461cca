#include "lacuna/framework/io/storage/safetensors_header.hpp"

#include <fmt/core.h>

#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <utility>

#include "lacuna/framework/core/error.h"
#include "lacuna/framework/core/input_checks.hpp"
#include "lacuna/framework/core/shape.h"

namespace lacuna {
namespace {

using Json = nlohmann::json;

constexpr const char* kMetadata = "__metadata__";

// Takes the JSON as it is read: a tree of it would keep one of two equal keys without an error.
// Whatever the format does not have is refused where it begins, so nothing nests deeper than it.
class HeaderReader final : public nlohmann::json_sax<Json> {
 public:
  SafetensorsHeader take() { return std::move(header_); }

  bool null() override { refuse("null"); }
  bool boolean(bool) override { refuse("true or false"); }
  bool number_integer(number_integer_t) override { refuse("a negative number"); }
  bool number_float(number_float_t, const string_t& text) override { refuse("the number " + text); }
  bool binary(binary_t&) override { refuse("bytes"); }

  bool number_unsigned(number_unsigned_t value) override {
    if (level_ == Level::Shape) {
      tensor().sizes.push_back(value);
      if (tensor().sizes.size() > Shape::kMaxRank) {
        throw DataError(fmt::format("the tensor '{}' has more than {} dimensions, the limit",
                                    tensor().name, Shape::kMaxRank));
      }
    } else if (level_ == Level::Offsets && offsets_ < 2) {
      (offsets_++ == 0 ? tensor().begin : tensor().end) = value;
    } else {
      refuse(fmt::format("the number {}", value));
    }
    return true;
  }

  bool string(string_t& text) override {
    require_no_zero(text);
    if (level_ == Level::Metadata) {
      header_.metadata[key_] = text;
    } else if (level_ == Level::Tensor && key_ == "dtype") {
      tensor().dtype = text;
    } else {
      refuse("text");
    }
    return true;
  }

  bool start_object(std::size_t) override {
    if (level_ == Level::File) {
      level_ = Level::Tensors;
    } else if (level_ == Level::Tensors && key_ == kMetadata) {
      level_ = Level::Metadata;
    } else if (level_ == Level::Tensors) {
      level_ = Level::Tensor;
      header_.tensors.push_back({.name = key_, .dtype = {}, .sizes = {}});
      fields_.clear();
    } else {
      refuse("an object");
    }
    return true;
  }

  bool key(string_t& key) override {
    require_no_zero(key);
    key_ = key;
    if (level_ == Level::Tensors) {
      if (names_.insert(key).second) return true;
      throw DataError(fmt::format("'{}' appears twice", key));
    }
    if (level_ == Level::Metadata) {
      if (!header_.metadata.contains(key)) return true;
      throw DataError(fmt::format("'{}' appears twice in {}", key, kMetadata));
    }
    if (key != "dtype" && key != "shape" && key != "data_offsets") {
      throw DataError(
          fmt::format("the tensor '{}' has a key '{}'; expected only dtype, shape and data_offsets",
                      tensor().name, key));
    }
    if (fields_.insert(key).second) return true;
    throw DataError(fmt::format("the tensor '{}' has '{}' twice", tensor().name, key));
  }

  bool end_object() override {
    if (level_ == Level::Tensor && fields_.size() < 3) {
      for (const char* field : {"dtype", "shape", "data_offsets"}) {
        if (fields_.contains(field)) continue;
        throw DataError(fmt::format("the tensor '{}' has no '{}'", tensor().name, field));
      }
    }
    level_ = level_ == Level::Tensors ? Level::End : Level::Tensors;
    return true;
  }

  bool start_array(std::size_t) override {
    if (level_ != Level::Tensor || key_ == "dtype") refuse("a list");
    level_ = key_ == "shape" ? Level::Shape : Level::Offsets;
    offsets_ = 0;
    return true;
  }

  bool end_array() override {
    if (level_ == Level::Offsets && offsets_ != 2) {
      refuse(offsets_ == 0 ? "an empty list" : "one number");
    }
    level_ = Level::Tensor;
    return true;
  }

  bool parse_error(std::size_t position, const std::string&,
                   const nlohmann::detail::exception& error) override {
    const std::string text = error.what();  // "[json.exception.parse_error.101] parse error at …"
    const size_t reason = text.find("] ");
    throw DataError(fmt::format("its header is not JSON (at byte {} of it): {}", position,
                                reason == std::string::npos ? text : text.substr(reason + 2)));
  }

 private:
  enum class Level { File, Tensors, Tensor, Metadata, Shape, Offsets, End };

  // Messages and files would end there.
  static void require_no_zero(const std::string& text) {
    if (text.find('\0') == std::string::npos) return;
    throw DataError(
        fmt::format("there is a zero byte in the text '{}' of its header", printable(text)));
  }

  SafetensorsRecord& tensor() { return header_.tensors.back(); }

  [[noreturn]] void refuse(const std::string& found) {
    const auto expected = [&](const std::string& where, const char* what) {
      throw DataError(fmt::format("{}: expected {}, found {}", where, what, found));
    };
    if (level_ == Level::File) expected("its header", "an object of tensors");
    if (level_ == Level::Tensors) expected("'" + key_ + "' in its header", "an object");
    if (level_ == Level::Metadata) expected(fmt::format("'{}' in {}", key_, kMetadata), "text");
    const std::string where = fmt::format("the {} of the tensor '{}'", key_, tensor().name);
    if (key_ == "dtype") expected(where, "text");
    if (key_ == "shape") expected(where, "a list of sizes, whole numbers from 0 on");
    expected(where, "two whole numbers, begin and end");
    throw DataError(where);  // not reached
  }

  SafetensorsHeader header_;
  Level level_ = Level::File;
  std::string key_;  // the last one read
  std::set<std::string> names_, fields_;
  int offsets_ = 0;
};

std::string quoted(const std::string& text) {
  try {
    return Json(text).dump();
  } catch (const Json::exception&) {
    throw StateError("the name '" + text + "' is not UTF-8, which a safetensors file's must be");
  }
}

}  // namespace

SafetensorsHeader parse_safetensors_header(std::string_view text) {
  // The library takes a zero byte for the end and passes over a byte order mark.
  const size_t first = text.find_first_not_of(" \t\r\n");
  if (first == std::string_view::npos || text[first] != '{') {
    throw DataError("its header is not JSON: it does not begin with '{'");
  }
  if (text.find('\0') != std::string_view::npos) {
    throw DataError("its header is not JSON: there is a zero byte in it");
  }
  HeaderReader reader;
  Json::sax_parse(text.begin(), text.end(), &reader);
  return reader.take();
}

std::string render_safetensors_header(const SafetensorsHeader& header) {
  std::string text = "{";
  const auto entry = [&](const std::string& key, const std::string& value) {
    text += (text.size() == 1 ? "" : ",") + quoted(key) + ":" + value;
  };
  if (!header.metadata.empty()) {
    std::string values;
    for (const auto& [key, value] : header.metadata) {
      values += (values.empty() ? "" : ",") + quoted(key) + ":" + quoted(value);
    }
    entry(kMetadata, "{" + values + "}");
  }
  for (const SafetensorsRecord& tensor : header.tensors) {
    std::string sizes;
    for (const uint64_t size : tensor.sizes) {
      sizes += fmt::format("{}{}", sizes.empty() ? "" : ",", size);
    }
    entry(tensor.name, fmt::format(R"({{"dtype":"{}","shape":[{}],"data_offsets":[{},{}]}})",
                                   tensor.dtype, sizes, tensor.begin, tensor.end));
  }
  return text + "}";
}

}  // namespace lacuna
