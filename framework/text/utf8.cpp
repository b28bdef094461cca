#include "lacuna/framework/text/utf8.hpp"

#include <fmt/core.h>

#include <cstdint>

#include "lacuna/framework/core/error.h"
#include "lacuna/framework/core/input_checks.hpp"
#include "lacuna/framework/text/unicode.hpp"

namespace lacuna {

void require_utf8(std::string_view text) {
  const size_t at = utf8_bytes(text);
  if (at == text.size()) return;
  throw DataError(
      fmt::format("{}: the byte {:#04x} is not UTF-8; convert the text to UTF-8, or use "
                  "`tokenizer: bytes`, which accepts any bytes",
                  unicode::place(text, at), static_cast<uint8_t>(text[at])));
}

}  // namespace lacuna
