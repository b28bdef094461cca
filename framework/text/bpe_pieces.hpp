// The pieces that GPT-2 cuts a text into before it merges bytes.
#pragma once

#include <string_view>
#include <vector>

namespace lacuna {

/// The pieces of a text, which joined are the text, by the pattern
/// `'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+`.
/// *Requires* UTF-8.
std::vector<std::string_view> bpe_pieces(std::string_view text);

}  // namespace lacuna
