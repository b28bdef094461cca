// How much text tokens stand for: what losses by the character are counted with.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "lacuna/framework/text/tokenizer.h"

namespace lacuna {

/// Characters (code points) of a text that is UTF-8. Of one that begins or ends within a character,
/// those that begin in it.
int64_t count_characters(std::string_view text);

/// For each of `places`, which ascend, the characters of `text` before its token of that number,
/// counted from 0; those of all of it where it has no more tokens. Exact where a token begins a
/// line; within a line each token counts for as many characters. *Requires* a tokenizer that cuts
/// at line ends: words or wordpiece. *Errors:* as Tokenizer::encode. *Cost:* encodes the text.
std::vector<double> characters_before(const Tokenizer& tokenizer, std::string_view text,
                                      std::span<const int64_t> places);

}  // namespace lacuna
