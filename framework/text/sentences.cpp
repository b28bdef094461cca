#include "lacuna/framework/text/sentences.hpp"

#include <fmt/core.h>

#include <utility>

#include "lacuna/framework/core/error.h"

namespace lacuna {
namespace {

void require_room(bool has_room, int64_t max_length, const char* of_what) {
  if (has_room) return;
  throw StateError(fmt::format("a length of {} leaves no room for {}", max_length, of_what));
}

void cut(std::vector<int64_t>& ids, int64_t length) { ids.resize(static_cast<size_t>(length)); }

// Tokens of the first and the second that stay, where there is room for so many.
std::pair<int64_t, int64_t> shared_room(int64_t first, int64_t second, int64_t room) {
  while (first + second > room) (first > second ? first : second) -= 1;
  return {first, second};
}

}  // namespace

std::vector<int64_t> encode_example(const Tokenizer& tokenizer, std::string_view sentence,
                                    int64_t max_length) {
  const auto cls = tokenizer.find("[CLS]"), sep = tokenizer.find("[SEP]");
  const int64_t room = max_length - (cls ? 1 : 0) - (sep ? 1 : 0);
  require_room(room >= 1, max_length, "a token of the sentence");
  std::vector<int64_t> ids = tokenizer.encode(sentence);
  if (static_cast<int64_t>(ids.size()) > room) cut(ids, room);
  if (cls) ids.insert(ids.begin(), *cls);
  if (sep) ids.push_back(*sep);
  return ids;
}

EncodedPair encode_pair(const Tokenizer& tokenizer, std::string_view first, std::string_view second,
                        int64_t max_length) {
  const auto cls = tokenizer.find("[CLS]"), sep = tokenizer.find("[SEP]");
  if (!sep) throw StateError("two sentences need a [SEP] between them, and there is no such token");
  const int64_t room = max_length - (cls ? 1 : 0) - 2;
  require_room(room >= 2, max_length, "a token of each of two sentences");
  EncodedPair pair{.ids = tokenizer.encode(first)};
  std::vector<int64_t> other = tokenizer.encode(second);
  const auto [of_first, of_second] =
      shared_room(static_cast<int64_t>(pair.ids.size()), static_cast<int64_t>(other.size()), room);
  cut(pair.ids, of_first);
  cut(other, of_second);
  if (cls) pair.ids.insert(pair.ids.begin(), *cls);
  pair.ids.push_back(*sep);
  pair.first = static_cast<int64_t>(pair.ids.size());
  pair.ids.insert(pair.ids.end(), other.begin(), other.end());
  pair.ids.push_back(*sep);
  return pair;
}

}  // namespace lacuna
