// Vocabularies and tokenizers as JSON.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace lacuna {

/// What a tokenizer is made of.
struct TokenizerParts {
  std::string kind;
  std::vector<std::string> tokens = {};  ///< by id
  std::vector<std::string> merges = {};  ///< bpe: "a b", in order of rank
  std::map<std::string, bool> flags = {};

  /// *Errors:* DataError unless the flag is there.
  bool flag(const std::string& name) const;
};

std::string render_tokenizer(const TokenizerParts& parts);
/// *Errors:* DataError when the text is not JSON in UTF-8, has a key twice, or has anything
/// else than a tokenizer's parts. *Cost:* O(length), however deep the JSON.
TokenizerParts parse_tokenizer(std::string_view text);

/// The tokens of `{"token": id, …}` by their ids. *Errors:* DataError as parse_tokenizer; when an
/// id is no number from 0, is there twice, or leaves a hole (names both tokens, or the id that is
/// missing).
std::vector<std::string> parse_vocabulary(std::string_view text);

}  // namespace lacuna
