#include "lacuna/framework/text/vocabulary.hpp"

#include <fmt/core.h>

#include <utility>

#include "lacuna/framework/core/error.h"
#include "lacuna/framework/core/input_checks.hpp"
#include "lacuna/framework/text/tokenizer.h"

namespace lacuna {

Vocabulary::Vocabulary(std::vector<std::string> tokens,
                       const std::function<std::string(size_t)>& place)
    : tokens_(std::move(tokens)) {
  if (tokens_.empty()) throw DataError("the vocabulary has no tokens");
  ids_.reserve(tokens_.size());
  for (size_t i = 0; i < tokens_.size(); ++i) {
    if (tokens_[i].empty()) throw DataError(place(i) + ": the token is empty");
    const auto [entry, is_new] = ids_.emplace(tokens_[i], static_cast<int64_t>(i));
    if (!is_new) {
      throw DataError(fmt::format("{}: the token '{}' is already there, at {}", place(i),
                                  printable(tokens_[i]),
                                  place(static_cast<size_t>(entry->second))));
    }
  }
}

Vocabulary::Vocabulary(std::vector<std::string> tokens)
    : Vocabulary(std::move(tokens), [](size_t id) { return fmt::format("id {}", id); }) {}

const std::string& Vocabulary::token(int64_t id) const {
  require_ids({&id, 1}, size());
  return tokens_[static_cast<size_t>(id)];
}

std::optional<int64_t> Vocabulary::find(std::string_view token) const {
  const auto found = ids_.find(token);
  if (found == ids_.end()) return std::nullopt;
  return found->second;
}

}  // namespace lacuna
