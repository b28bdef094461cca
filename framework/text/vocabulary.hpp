// Vocabulary: tokens by id and ids by token.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace lacuna {

class Vocabulary {
 public:
  /// Token i gets the id i. *Errors:* DataError when there are none, one is empty, or one is there
  /// twice; `place(id)` words where a token came from.
  Vocabulary(std::vector<std::string> tokens, const std::function<std::string(size_t)>& place);
  explicit Vocabulary(std::vector<std::string> tokens);

  int64_t size() const { return static_cast<int64_t>(tokens_.size()); }
  const std::vector<std::string>& tokens() const { return tokens_; }
  /// *Errors:* DataError on an id outside of the vocabulary.
  const std::string& token(int64_t id) const;
  std::optional<int64_t> find(std::string_view token) const;

 private:
  struct Hash {
    using is_transparent = void;
    size_t operator()(std::string_view text) const { return std::hash<std::string_view>{}(text); }
  };

  std::vector<std::string> tokens_;
  std::unordered_map<std::string, int64_t, Hash, std::equal_to<>> ids_;
};

}  // namespace lacuna
