// Encoding a long text without the ids of all of it at once.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string_view>

#include "lacuna/framework/text/tokenizer.h"

namespace lacuna {

/// Gives `take` the tokens of `tokenizer.encode(text)`, one run of them after the other: of
/// characters and bytes those of a mebibyte of the text, of other kinds, whose tokens depend on
/// what is around them, all at once. *Errors:* DataError as there, after which what was taken is to
/// be dropped. *Cost:* 8 bytes a token of a run.
void encode_by_parts(const Tokenizer& tokenizer, std::string_view text,
                     const std::function<void(std::span<const int64_t> ids)>& take);

}  // namespace lacuna
