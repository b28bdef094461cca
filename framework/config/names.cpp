#include "lacuna/framework/config/names.h"

#include <fnmatch.h>

#include <algorithm>
#include <cctype>
#include <numeric>

#include "lacuna/framework/config/familiar_names.hpp"
#include "lacuna/framework/core/input_checks.hpp"

namespace lacuna {
namespace {

size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), size_t{0});
  for (size_t i = 1; i <= a.size(); ++i) {
    size_t diagonal = row[0];
    row[0] = i;
    for (size_t j = 1; j <= b.size(); ++j) {
      const auto lower = [](char c) { return std::tolower(static_cast<unsigned char>(c)); };
      const size_t substituted = diagonal + (lower(a[i - 1]) == lower(b[j - 1]) ? 0 : 1);
      diagonal = row[j];
      row[j] = std::min({row[j] + 1, row[j - 1] + 1, substituted});
    }
  }
  return row[b.size()];
}

std::vector<std::string_view> split_at_stars(std::string_view pattern) {
  std::vector<std::string_view> parts;
  for (size_t star = pattern.find('*'); star != std::string_view::npos; star = pattern.find('*')) {
    parts.push_back(pattern.substr(0, star));
    pattern.remove_prefix(star + 1);
  }
  parts.push_back(pattern);
  return parts;
}

// What the stars between `parts` match in `name`, if it matches. As little as possible, from the
// left on, is enough: a match with a longer one leaves no more room for what follows.
std::optional<std::vector<std::string_view>> match_stars(std::span<const std::string_view> parts,
                                                         std::string_view name) {
  std::vector<std::string_view> matches;
  if (parts.size() == 1 && name != parts[0]) return std::nullopt;
  if (parts.size() == 1) return matches;
  if (!name.starts_with(parts.front())) return std::nullopt;
  name.remove_prefix(parts.front().size());
  for (const std::string_view part : parts.subspan(1, parts.size() - 2)) {
    const size_t found = name.find(part);
    if (found == std::string_view::npos) return std::nullopt;
    matches.push_back(name.substr(0, found));
    name.remove_prefix(found + part.size());
  }
  if (!name.ends_with(parts.back())) return std::nullopt;
  matches.push_back(name.substr(0, name.size() - parts.back().size()));
  return matches;
}

// At most `most` of the lines, as they can stand in a message, and the number of the others.
std::string join_shown(std::span<const std::string> lines, std::string_view separator,
                       size_t most) {
  constexpr size_t kMostBytes = 2000;
  std::vector<std::string> shown;
  for (const std::string& line : lines.first(std::min(lines.size(), most))) {
    shown.push_back(printable(line, kMostBytes));
  }
  if (lines.size() > most) {
    shown.push_back("and " + std::to_string(lines.size() - most) + " more");
  }
  return join(shown, separator);
}

}  // namespace

bool is_misspelling(std::string_view a, std::string_view b) {
  constexpr size_t kShort = 3, kLong = 6;
  const size_t length = std::min(a.size(), b.size());
  if (length < kShort - 1 || std::max(a.size(), b.size()) < kShort) return false;
  std::string first = to_lower(a), second = to_lower(b);
  if (edit_distance(first, second) <= (length >= kLong ? 2u : 1u)) return true;
  std::ranges::sort(first);
  std::ranges::sort(second);
  return first == second;
}

bool glob_match(std::string_view pattern, std::string_view name) {
  // No escapes: a backslash stands for itself.
  return fnmatch(std::string(pattern).c_str(), std::string(name).c_str(), FNM_NOESCAPE) == 0;
}

std::optional<std::string> rename_by_glob(std::string_view from, std::string_view to,
                                          std::string_view name) {
  const auto matches = match_stars(split_at_stars(from), name);
  if (!matches) return std::nullopt;
  const std::vector<std::string_view> parts = split_at_stars(to);
  std::string renamed(parts.front());
  for (size_t i = 1; i < parts.size(); ++i) renamed.append(matches->at(i - 1)).append(parts[i]);
  return renamed;
}

std::string to_lower(std::string_view text) {
  std::string lower(text);
  std::ranges::transform(lower, lower.begin(),
                         [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return lower;
}

std::string nearest_name(std::string_view name, std::span<const std::string> candidates) {
  std::string best;
  size_t best_distance = std::string_view::npos;
  for (const std::string& candidate : candidates) {
    const size_t distance = edit_distance(name, candidate);
    if (distance * 2 <= std::max(name.size(), candidate.size()) && distance < best_distance) {
      best = candidate;
      best_distance = distance;
    }
  }
  return best;
}

std::string suggest_name(std::string_view name, std::span<const std::string> candidates) {
  if (std::string familiar = suggest_familiar(name, candidates); !familiar.empty()) return familiar;
  const std::string nearest = nearest_name(name, candidates);
  if (!nearest.empty()) return "did you mean '" + nearest + "'?";
  if (candidates.empty()) return "";
  constexpr size_t kMostNames = 60;
  return "valid names: " + join_shown(candidates, ", ", kMostNames);
}

std::string join(std::span<const std::string> parts, std::string_view separator) {
  std::string text;
  for (size_t i = 0; i < parts.size(); ++i) {
    if (i > 0) text += separator;
    text += parts[i];
  }
  return text;
}

std::string join_foreign(std::span<const std::string> lines, std::string_view separator) {
  constexpr size_t kMostLines = 8;
  return join_shown(lines, separator, kMostLines);
}

}  // namespace lacuna
