#include "lacuna/framework/report/run_names.hpp"

#include <algorithm>
#include <cctype>
#include <cstddef>
#include <filesystem>
#include <set>

namespace lacuna {

namespace fs = std::filesystem;

namespace {

using Words = std::vector<std::string>;

// A path's folders, the innermost first.
Words folders_of(const std::string& path) {
  Words pieces;
  for (const fs::path& piece : fs::absolute(path).lexically_normal()) {
    if (!piece.empty()) pieces.push_back(piece.string());
  }
  std::ranges::reverse(pieces);
  return pieces;
}

bool begin_alike(const Words& one, const Words& other, size_t count) {
  return one.size() >= count && other.size() >= count &&
         std::equal(one.begin(), one.begin() + static_cast<std::ptrdiff_t>(count), other.begin());
}

// Cut behind each separator; commas in brackets separate nothing.
Words cut(const std::string& name, std::string_view separators) {
  Words words(1);
  int depth = 0;
  for (const char c : name) {
    words.back() += c;
    if (c == '[' || c == '{' || c == '(') ++depth;
    if ((c == ']' || c == '}' || c == ')') && depth > 0) --depth;
    if (depth == 0 && separators.find(c) != std::string_view::npos) words.emplace_back();
  }
  if (words.size() > 1 && words.back().empty()) words.pop_back();
  return words;
}

std::string joined(const Words& words, size_t begin, size_t end) {
  std::string text;
  for (size_t i = begin; i < end; ++i) text += words[i];
  while (!text.empty() && std::string_view("/_-, ").find(text.back()) != std::string_view::npos) {
    text.pop_back();
  }
  return text;
}

bool are_distinct(const std::vector<std::string>& labels) {
  return std::set<std::string>(labels.begin(), labels.end()).size() == labels.size() &&
         std::ranges::none_of(labels, &std::string::empty);
}

bool has_letter(const std::string& text) {
  return std::ranges::any_of(text, [](char c) {
    return std::isalpha(static_cast<unsigned char>(c)) != 0 || (c & 0x80) != 0;
  });
}

// Settings "key=value" that are the same in all names go, and keys keep their last part.
std::vector<std::string> without_common_settings(const std::vector<std::string>& names) {
  std::vector<Words> all;
  for (const std::string& name : names) all.push_back(cut(name, ","));
  const size_t count = all[0].size();
  if (std::ranges::any_of(all, [&](const Words& words) { return words.size() != count; })) {
    return names;
  }
  std::vector<std::string> labels(names.size());
  for (size_t i = 0; i < count; ++i) {
    const bool is_same = std::ranges::all_of(all, [&](const Words& words) {
      return joined(words, i, i + 1) == joined(all[0], i, i + 1);
    });
    if (is_same) continue;
    for (size_t k = 0; k < names.size(); ++k) {
      std::string word = joined(all[k], i, i + 1);
      const size_t sign = word.find('=');
      const size_t dot = sign == std::string::npos ? sign : word.rfind('.', sign);
      if (dot != std::string::npos) word.erase(0, dot + 1);
      labels[k] += (labels[k].empty() ? "" : ",") + word;
    }
  }
  return are_distinct(labels) ? labels : names;
}

std::vector<std::string> without_common_ends(const std::vector<std::string>& names) {
  std::vector<Words> all;
  size_t fewest = SIZE_MAX;
  for (const std::string& name : names) {
    all.push_back(cut(name, "/_-, "));
    fewest = std::min(fewest, all.back().size());
  }
  const auto is_common = [&](size_t before, size_t behind) {
    return std::ranges::all_of(all, [&](const Words& words) {
      return begin_alike(words, all[0], before) &&
             joined(words, words.size() - behind, words.size()) ==
                 joined(all[0], all[0].size() - behind, all[0].size());
    });
  };
  size_t before = 0, behind = 0;
  while (before + 1 < fewest && is_common(before + 1, 0)) ++before;
  while (before + behind + 1 < fewest && is_common(before, behind + 1)) ++behind;
  while (true) {
    std::vector<std::string> labels;
    for (const Words& words : all) labels.push_back(joined(words, before, words.size() - behind));
    const bool can_be_read = are_distinct(labels) && std::ranges::all_of(labels, has_letter);
    if (can_be_read || (before == 0 && behind == 0)) return can_be_read ? labels : names;
    --(before > 0 ? before : behind);
  }
}

}  // namespace

std::vector<std::string> names_of_folders(const std::vector<std::string>& folders) {
  std::vector<Words> parts;
  for (const std::string& folder : folders) parts.push_back(folders_of(folder));
  std::vector<std::string> names;
  for (const Words& own : parts) {
    const auto ends_alike = [&](size_t count) {
      return std::ranges::any_of(parts, [&](const Words& other) {
        return other != own && begin_alike(own, other, count);
      });
    };
    size_t count = 1;
    while (count < own.size() && ends_alike(count)) ++count;
    std::string name;
    for (size_t k = count; k-- > 0;) name += own[k] + (k > 0 ? "/" : "");
    names.push_back(name);
  }
  return names;
}

std::vector<std::string> short_labels(const std::vector<std::string>& names) {
  if (names.size() < 2 || !are_distinct(names)) return names;
  return without_common_ends(without_common_settings(names));
}

std::string common_label(const std::vector<std::string>& labels) {
  if (labels.size() == 1) return labels[0];
  std::vector<Words> all;
  for (const std::string& label : labels) all.push_back(cut(label, "/_-, "));
  size_t count = 0;
  const auto is_common = [&](const Words& words) { return begin_alike(words, all[0], count + 1); };
  while (!all.empty() && std::ranges::all_of(all, is_common)) ++count;
  return all.empty() ? "" : joined(all[0], 0, count);
}

}  // namespace lacuna
