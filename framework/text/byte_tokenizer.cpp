#include "lacuna/framework/text/byte_tokenizer.hpp"

#include "lacuna/framework/text/tokenizer_json.hpp"

namespace lacuna {

std::vector<int64_t> ByteTokenizer::encode(std::string_view text) const {
  std::vector<int64_t> ids;
  ids.reserve(text.size());
  for (const char byte : text) ids.push_back(static_cast<uint8_t>(byte));
  return ids;
}

std::string ByteTokenizer::decode(std::span<const int64_t> ids) const {
  require_ids(ids, kTokens);
  std::string text;
  text.reserve(ids.size());
  for (const int64_t id : ids) text += static_cast<char>(id);
  return text;
}

std::string ByteTokenizer::token(int64_t id) const { return decode({&id, 1}); }

std::optional<int64_t> ByteTokenizer::find(std::string_view token) const {
  if (token.size() != 1) return std::nullopt;
  return static_cast<uint8_t>(token.front());
}

std::string ByteTokenizer::to_json() const { return render_tokenizer({.kind = "bytes"}); }

}  // namespace lacuna
