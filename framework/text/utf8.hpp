// UTF-8, checked where text comes in.
#pragma once

#include <string_view>

namespace lacuna {

/// *Errors:* DataError "byte 12 (line 3): the byte 0xe9 is not UTF-8 …" unless the text is UTF-8:
/// shortest forms alone, no surrogates, up to U+10FFFF. Bytes count from 0, lines from 1.
/// *Cost:* one pass.
void require_utf8(std::string_view text);

}  // namespace lacuna
