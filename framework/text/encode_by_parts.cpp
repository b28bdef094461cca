#include "lacuna/framework/text/encode_by_parts.hpp"

#include <cstddef>

#include "lacuna/framework/core/error.h"

namespace lacuna {
namespace {

// A beginning of a text, of about that many bytes and of whole characters.
std::string_view beginning_of(std::string_view text, size_t bytes) {
  if (text.size() <= bytes) return text;
  constexpr size_t kLongest = 4;  // of a character
  size_t end = bytes;
  while (end + kLongest > bytes && (text[end] & 0xC0) == 0x80) --end;
  return text.substr(0, end);
}

}  // namespace

void encode_by_parts(const Tokenizer& tokenizer, std::string_view text,
                     const std::function<void(std::span<const int64_t> ids)>& take) {
  if (tokenizer.kind() != "characters" && tokenizer.kind() != "bytes") {
    take(tokenizer.encode(text));
    return;
  }
  constexpr size_t kPart = size_t{1} << 20;
  try {
    for (std::string_view rest = text; !rest.empty();) {
      const std::string_view part = beginning_of(rest, kPart);
      take(tokenizer.encode(part));
      rest.remove_prefix(part.size());
    }
  } catch (const DataError&) {
    tokenizer.encode(text);  // reports where it is in all of the text
    throw;
  }
}

}  // namespace lacuna
