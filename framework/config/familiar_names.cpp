#include "lacuna/framework/config/familiar_names.hpp"

#include <algorithm>
#include <cctype>

#include "lacuna/framework/config/names.h"

namespace lacuna {
namespace {

// "nn.Batch_Norm" → "batchnorm".
std::string plain_word(std::string_view name) {
  const size_t dot = name.rfind('.');
  if (dot != std::string_view::npos) name.remove_prefix(dot + 1);
  std::string word = to_lower(name);
  std::erase_if(word, [](char c) { return c == '_' || c == '-'; });
  return word;
}

std::vector<std::string_view> words_of(std::string_view list) {
  std::vector<std::string_view> words;
  while (!list.empty()) {
    const size_t end = std::min(list.find(' '), list.size());
    if (end > 0) words.push_back(list.substr(0, end));
    list.remove_prefix(std::min(end + 1, list.size()));
  }
  return words;
}

bool has_word(std::string_view list, std::string_view plain) {
  return std::ranges::any_of(words_of(list),
                             [&](std::string_view word) { return plain_word(word) == plain; });
}

// The first word of the list that is a candidate, but not `name` itself.
std::string first_of(std::string_view list, std::span<const std::string> candidates,
                     std::string_view name) {
  for (const std::string_view word : words_of(list)) {
    if (word != name && std::ranges::find(candidates, word) != candidates.end()) {
      return std::string(word);
    }
  }
  return "";
}

std::string did_you_mean(std::string_view name, std::string_view note = "") {
  return "did you mean '" + std::string(name) + "'?" +
         (note.empty() ? "" : " " + std::string(note));
}

}  // namespace

bool is_familiar(std::string_view name, std::string_view ours) {
  const std::string plain = plain_word(name);
  return std::ranges::any_of(familiar_names(), [&](const FamiliarName& row) {
    return has_word(row.theirs, plain) && has_word(row.ours, plain_word(ours));
  });
}

std::string suggest_familiar(std::string_view name, std::span<const std::string> candidates) {
  const std::string plain = plain_word(name);
  for (const std::string& candidate : candidates) {  // BatchNorm for batch_norm
    if (candidate != name && plain_word(candidate) == plain) return did_you_mean(candidate);
  }
  for (const FamiliarName& row : familiar_names()) {
    if (!has_word(row.theirs, plain) && !has_word(row.ours, plain)) continue;
    if (const std::string ours = first_of(row.ours, candidates, name); !ours.empty()) {
      return did_you_mean(ours, row.note);
    }
    if (!first_of(row.among, candidates, name).empty()) return std::string(row.note);
  }
  return "";
}

std::string familiar_key(std::string_view name) {
  const std::string plain = plain_word(name);
  for (const FamiliarName& row : familiar_names()) {
    if (!row.key.empty() && has_word(row.theirs, plain)) return std::string(row.key);
  }
  return "";
}

std::string suggest_key(std::string_view name, std::string_view parent,
                        std::span<const std::string> candidates) {
  if (std::ranges::find(candidates, name) != candidates.end()) return did_you_mean(name);
  if (std::string familiar = suggest_familiar(name, candidates); !familiar.empty()) return familiar;
  const std::string nearest = nearest_name(name, candidates);
  if (!nearest.empty() && is_misspelling(name, nearest)) return did_you_mean(nearest);
  const std::string plain = plain_word(name);
  for (const FamiliarName& row : familiar_names()) {
    if (!has_word(row.theirs, plain)) continue;
    if (row.ours.empty() && row.among.empty()) return std::string(row.note);
    // In its own section the key would be among the candidates, if it went with the rest.
    const std::string_view section = row.key.substr(0, row.key.rfind('.'));
    if (row.key.empty() || (section == parent && section != row.key)) continue;
    return "here it is '" + std::string(row.key) + "'" +
           (row.note.empty() ? "" : ". " + std::string(row.note));
  }
  return suggest_name(name, candidates);
}

}  // namespace lacuna
