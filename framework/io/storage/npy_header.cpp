#include "lacuna/framework/io/storage/npy_header.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <limits>
#include <optional>
#include <string_view>

#include "lacuna/framework/core/error.h"
#include "lacuna/framework/core/input_checks.hpp"

namespace lacuna {
namespace {

constexpr std::string_view kNpyMagic = "\x93NUMPY";

struct Descr {
  std::string_view name;  // without the order of bytes
  ElementType type;
};
constexpr std::array<Descr, 12> kDescrs = {{
    {"b1", ElementType::Bool},
    {"i1", ElementType::I8},
    {"u1", ElementType::U8},
    {"i2", ElementType::I16},
    {"u2", ElementType::U16},
    {"i4", ElementType::I32},
    {"u4", ElementType::U32},
    {"i8", ElementType::I64},
    {"u8", ElementType::U64},
    {"f2", ElementType::F16},
    {"f4", ElementType::F32},
    {"f8", ElementType::F64},
}};

// A type of NumPy's that is never read here: what messages call it, and the bytes of an element.
struct OtherType {
  std::string name;
  size_t width;
};

// By the letter, and the number behind it: the size, or how many characters there are.
std::optional<OtherType> other_type(std::string_view name) {
  constexpr size_t kMostWidth = size_t{1} << 24;
  size_t count = 0;
  const char* end = name.data() + name.size();
  if (name.size() < 2) return std::nullopt;
  const auto [rest, error] = std::from_chars(name.data() + 1, end, count);
  if (error != std::errc() || count > kMostWidth) return std::nullopt;
  const std::string_view unit(rest, static_cast<size_t>(end - rest));  // of times: [ns]
  const bool is_time = count == 8 && unit.starts_with('[') && unit.ends_with(']');
  if (!unit.empty() && !is_time) return std::nullopt;
  switch (name.front()) {
    case 'c':
      if (count != 8 && count != 16 && count != 32) return std::nullopt;
      return OtherType{fmt::format("complex{}", 8 * count), count};
    case 'f':
      if (count != 12 && count != 16) return std::nullopt;
      return OtherType{fmt::format("float{}", 8 * count), count};
    case 'U':
      return OtherType{"text", 4 * count};
    case 'S':
      return OtherType{"text of bytes", count};
    case 'V':
      return OtherType{count == 2 ? "raw bytes, as NumPy saves bfloat16" : "raw bytes", count};
    case 'M':
    case 'm':
      if (count != 8) return std::nullopt;
      return OtherType{name.front() == 'M' ? "datetime64" : "timedelta64", count};
    default:
      return std::nullopt;
  }
}

// Reads the dictionary from left to right; whatever is not expected is an error where it stands.
class DictionaryReader {
 public:
  explicit DictionaryReader(std::string_view text) : text_(text) {}

  NpyHeader read() {
    expect('{');
    while (!take('}')) {
      read_entry();
      if (take('}')) break;
      expect(',');
    }
    skip_spaces();
    if (at_ != text_.size()) fail("nothing after the dictionary");
    for (const auto& [key, was_read] :
         {std::pair{"descr", has_descr_}, {"fortran_order", has_order_}, {"shape", has_shape_}}) {
      if (!was_read) throw DataError(fmt::format("its header has no '{}'", key));
    }
    const auto most = std::numeric_limits<int64_t>::max() / std::max<int64_t>(8, width());
    if (header_.shape.numel() > most) {
      throw DataError(fmt::format("its shape {} is too large", header_.shape.to_string()));
    }
    return header_;
  }

 private:
  void read_entry() {
    const std::string key = read_text("a key in quotes");
    expect(':');
    if (key == "descr") {
      once(has_descr_, key);
      skip_spaces();
      if (at_ < text_.size() && text_[at_] == '[') {
        throw UnreadElements(
            "its elements are records of several fields; save each field as an array of its own");
      }
      read_descr(read_text("the type in quotes"));
    } else if (key == "fortran_order") {
      once(has_order_, key);
      header_.is_fortran = read_bool();
    } else if (key == "shape") {
      once(has_shape_, key);
      read_shape();
    } else {
      throw DataError(fmt::format(
          "its header has a key '{}'; expected only descr, fortran_order and shape", key));
    }
  }

  static void once(bool& was_read, const std::string& key) {
    if (was_read) throw DataError(fmt::format("its header has '{}' twice", key));
    was_read = true;
  }

  void read_descr(const std::string& descr) {
    header_.descr = descr;
    const char order = descr.empty() ? '\0' : descr.front();
    const std::string_view name = std::string_view(descr).substr(descr.empty() ? 0 : 1);
    if (name.starts_with('O')) {
      throw UnreadElements("its elements are Python objects (a pickle), which is never loaded");
    }
    for (const Descr& known : kDescrs) {
      if (known.name != name) continue;
      const bool is_byte = element_bytes(known.type) == 1;
      if (order != '<' && order != '>' && !(order == '|' && is_byte)) break;
      header_.type = known.type;
      header_.width = element_bytes(known.type);
      header_.type_name = std::string(to_string(known.type));
      header_.is_big_endian = order == '>' && !is_byte;
      return;
    }
    const std::optional<OtherType> other = other_type(name);
    if (!other || (order != '<' && order != '>' && order != '|')) {
      throw DataError(
          fmt::format("its type '{}' is unknown; expected one of b1, i1 to i8, u1 to u8, f2, f4 "
                      "and f8, as in '<f4'",
                      descr));
    }
    header_.width = other->width;
    header_.character = name.front() == 'U' ? 4 : name.front() == 'S' ? 1 : 0;
    header_.is_big_endian = order == '>' && header_.character == 4;
    header_.type_name = fmt::format("{} ('{}')", other->name, descr);
  }

  bool read_bool() {
    skip_spaces();
    for (const auto& [word, value] :
         {std::pair<std::string_view, bool>{"True", true}, {"False", false}}) {
      if (!text_.substr(at_).starts_with(word)) continue;
      at_ += word.size();
      return value;
    }
    fail("True or False");
  }

  void read_shape() {
    expect('(');
    std::vector<int64_t> sizes;
    bool has_comma = false;
    while (!take(')')) {
      if (!sizes.empty() && !has_comma) fail("a comma between sizes");
      sizes.push_back(read_size());
      has_comma = take(',');
      if (sizes.size() > static_cast<size_t>(Shape::kMaxRank)) {
        throw DataError(
            fmt::format("its shape has more than {} sizes, the limit", Shape::kMaxRank));
      }
    }
    if (sizes.size() == 1 && !has_comma) fail("a comma after the only size");
    try {
      header_.shape = Shape(std::span<const int64_t>(sizes));
    } catch (const ShapeError& error) {
      throw DataError(error.what());
    }
  }

  int64_t width() const { return static_cast<int64_t>(header_.width); }

  int64_t read_size() {
    skip_spaces();
    int64_t size = 0;
    const char* first = text_.data() + at_;
    const auto [end, error] = std::from_chars(first, text_.data() + text_.size(), size);
    if (error != std::errc() || size < 0) fail("a size, a whole number from 0 on");
    at_ += static_cast<size_t>(end - first);
    return size;
  }

  std::string read_text(const char* expected) {
    skip_spaces();
    const char quote = at_ < text_.size() ? text_[at_] : '\0';
    if (quote != '\'' && quote != '"') fail(expected);
    const size_t end = text_.find(quote, at_ + 1);
    if (end == std::string_view::npos) fail("the end of a text");
    const std::string_view inside = text_.substr(at_ + 1, end - at_ - 1);
    if (inside.find_first_of(std::string_view("\\\n\0", 3)) != std::string_view::npos) {
      fail("a text without escapes and zero bytes");
    }
    at_ = end + 1;
    return std::string(inside);
  }

  void skip_spaces() {
    while (at_ < text_.size() && (text_[at_] == ' ' || text_[at_] == '\n')) ++at_;
  }
  bool take(char wanted) {
    skip_spaces();
    if (at_ >= text_.size() || text_[at_] != wanted) return false;
    ++at_;
    return true;
  }
  void expect(char wanted) {
    if (!take(wanted)) fail(fmt::format("'{}'", wanted));
  }
  [[noreturn]] void fail(const std::string& expected) const {
    throw DataError(fmt::format(
        "its header is not a dictionary as NumPy writes it: expected {} at character {}", expected,
        at_));
  }

  std::string_view text_;
  size_t at_ = 0;
  NpyHeader header_;
  bool has_descr_ = false, has_order_ = false, has_shape_ = false;
};

// Where the dictionary begins.
size_t text_begin(std::span<const std::byte> beginning) {
  return std::to_integer<int>(beginning[6]) == 1 ? 10 : 12;
}

}  // namespace

size_t npy_header_length(std::span<const std::byte> beginning) {
  const auto byte = [&](size_t i) { return std::to_integer<size_t>(beginning[i]); };
  if (beginning.size() < kNpyPreamble) {
    throw DataError(fmt::format("it has {} bytes, fewer than a header", beginning.size()));
  }
  for (size_t i = 0; i < kNpyMagic.size(); ++i) {
    if (byte(i) != static_cast<unsigned char>(kNpyMagic[i])) {
      throw DataError("it does not begin with \\x93NUMPY");
    }
  }
  if (byte(6) < 1 || byte(6) > 3 || byte(7) != 0) {
    throw DataError(fmt::format("it is of version {}.{} of the format; expected 1.0, 2.0 or 3.0",
                                byte(6), byte(7)));
  }
  size_t length = byte(8) | byte(9) << 8;
  if (byte(6) > 1) length |= byte(10) << 16 | byte(11) << 24;
  length += text_begin(beginning);
  if (length > kMostNpyHeader) {
    throw DataError(
        fmt::format("its header would have {} bytes; the limit is {}", length, kMostNpyHeader));
  }
  return length;
}

NpyHeader parse_npy_header(std::span<const std::byte> header) {
  const size_t begin = text_begin(header);
  if (header.size() < begin) throw DataError("its header is cut off");
  const std::string_view text(reinterpret_cast<const char*>(header.data()) + begin,
                              header.size() - begin);
  NpyHeader parsed = DictionaryReader(text).read();
  parsed.length = header.size();
  return parsed;
}

std::string render_npy_header(const std::string& descr, std::span<const int64_t> sizes) {
  std::string shape;
  for (const int64_t size : sizes) shape += fmt::format("{}{}", shape.empty() ? "" : ", ", size);
  if (sizes.size() == 1) shape += ",";
  std::string text =
      fmt::format("{{'descr': '{}', 'fortran_order': False, 'shape': ({}), }}", descr, shape);
  constexpr size_t kBefore = 10, kAlignment = 64;
  const size_t whole = (kBefore + text.size() + 1 + kAlignment - 1) / kAlignment * kAlignment;
  text.resize(whole - kBefore - 1, ' ');
  text += '\n';
  std::string header(kNpyMagic);
  header += '\x01';
  header += '\0';
  header += static_cast<char>(text.size() & 0xff);
  header += static_cast<char>(text.size() >> 8);
  return header + text;
}

}  // namespace lacuna
