// ByteTokenizer: every byte is a token.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "lacuna/framework/text/tokenizer.h"

namespace lacuna {

/// 256 tokens; the id of a byte is its value. Takes any bytes, so text in any encoding.
class ByteTokenizer final : public Tokenizer {
 public:
  static constexpr int64_t kTokens = 256;

  std::string_view kind() const override { return "bytes"; }
  std::vector<int64_t> encode(std::string_view text) const override;
  std::string decode(std::span<const int64_t> ids) const override;
  int64_t vocabulary_size() const override { return kTokens; }
  std::string token(int64_t id) const override;
  std::optional<int64_t> find(std::string_view token) const override;
  std::string to_json() const override;
};

}  // namespace lacuna
