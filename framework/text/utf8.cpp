#include "lacuna/framework/text/utf8.h"

#include <fmt/core.h>

#include <string>

#include "lacuna/framework/core/error.h"
#include "lacuna/framework/text/unicode.hpp"

namespace lacuna {
namespace {

uint8_t byte_at(std::string_view text, size_t at) { return static_cast<uint8_t>(text[at]); }

// Bytes of the code point that begins at `at`; 0 where none does.
size_t length_at(std::string_view text, size_t at) {
  const uint8_t lead = byte_at(text, at);
  if (lead < 0x80) return 1;
  const size_t length = lead >= 0xF0 ? 4 : lead >= 0xE0 ? 3 : 2;
  if (lead < 0xC2 || lead > 0xF4 || at + length > text.size()) return 0;
  // The second byte rules out longer forms, surrogates and what is beyond U+10FFFF.
  const uint8_t least = lead == 0xE0 ? 0xA0 : lead == 0xF0 ? 0x90 : 0x80;
  const uint8_t most = lead == 0xED ? 0x9F : lead == 0xF4 ? 0x8F : 0xBF;
  if (byte_at(text, at + 1) < least || byte_at(text, at + 1) > most) return 0;
  for (size_t i = 2; i < length; ++i) {
    if ((byte_at(text, at + i) & 0xC0) != 0x80) return 0;
  }
  return length;
}

}  // namespace

void require_utf8(std::string_view text) {
  for (size_t at = 0; at < text.size();) {
    const size_t length = length_at(text, at);
    if (length == 0) {
      throw DataError(
          fmt::format("{}: the byte {:#04x} is not UTF-8; convert the text to it, or take "
                      "`tokenizer: bytes`, which takes any bytes",
                      unicode::place(text, at), byte_at(text, at)));
    }
    at += length;
  }
}

}  // namespace lacuna
