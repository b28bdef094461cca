// A small vocabulary of byte pairs, worked by hand.
#pragma once

#include <string>
#include <vector>

#include "lacuna/framework/text/unicode.hpp"

namespace lacuna {

/// The 256 letters that stand for bytes: 0 is "!" (byte 33), 220 the space (byte 32), as in
/// GPT-2's.
inline std::vector<std::string> byte_letters_in_order() {
  std::vector<std::string> letters;
  const auto add = [&](char32_t code) {
    letters.emplace_back();
    unicode::append(letters.back(), code);
  };
  for (char32_t byte = 33; byte < 127; ++byte) add(byte);
  for (char32_t byte = 161; byte < 256; ++byte) {
    if (byte != 173) add(byte);
  }
  while (letters.size() < 256) add(static_cast<char32_t>(256 + letters.size() - 188));
  return letters;
}

/// The letters, what merge from 256 on, and <|endoftext|> last.
inline std::vector<std::string> small_bpe_tokens(const std::vector<std::string>& merged) {
  std::vector<std::string> tokens = byte_letters_in_order();
  tokens.insert(tokens.end(), merged.begin(), merged.end());
  tokens.emplace_back("<|endoftext|>");
  return tokens;
}

/// {"token": id, …}
inline std::string vocabulary_json(const std::vector<std::string>& tokens) {
  std::string json = "{";
  for (size_t id = 0; id < tokens.size(); ++id) {
    std::string escaped;
    for (const char byte : tokens[id]) {
      if (byte == '"' || byte == '\\') escaped += '\\';
      escaped += byte;
    }
    json += (id == 0 ? "\"" : ", \"") + escaped + "\": " + std::to_string(id);
  }
  return json + "}";
}

}  // namespace lacuna
