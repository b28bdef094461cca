#include "lacuna/framework/program/settings/documented_keys.hpp"

#include <algorithm>
#include <cctype>
#include <sstream>

namespace lacuna {
namespace {

constexpr std::string_view kHeader = "| key | type | default | example | meaning |";

std::string trimmed_cell(const std::string& cell) {
  const size_t first = cell.find_first_not_of(' ');
  if (first == std::string::npos) return "";
  return cell.substr(first, cell.find_last_not_of(' ') - first + 1);
}

std::vector<std::string> cells_of(const std::string& line) {
  std::vector<std::string> cells;
  std::istringstream text(line.substr(1));
  for (std::string cell; std::getline(text, cell, '|');) cells.push_back(trimmed_cell(cell));
  return cells;
}

// "[update](#update) of `x`" → "update of x".
std::string without_markup(const std::string& text) {
  std::string plain;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text.compare(i, 2, "](") == 0) {
      i = std::min(text.find(')', i), text.size());
    } else if (text[i] != '`' && !(text[i] == '[' && text.find("](", i) != std::string::npos)) {
      plain += text[i];
    }
  }
  return plain;
}

void add_names_in_backquotes(const std::string& text, std::vector<std::string>& names) {
  std::istringstream parts(text);
  bool is_inside = false;
  for (std::string part; std::getline(parts, part, '`'); is_inside = !is_inside) {
    const bool is_name =
        is_inside && !part.empty() && std::ranges::all_of(part, [](unsigned char c) {
          return std::islower(c) != 0 || std::isdigit(c) != 0 || c == '_';
        });
    if (is_name && std::ranges::find(names, part) == names.end()) names.push_back(part);
  }
}

std::vector<std::string> choices_of(const std::vector<std::string>& cells) {
  if (cells[1].starts_with("true")) return {"true", "false"};
  std::vector<std::string> names;
  if (!cells[1].starts_with("name")) return names;
  add_names_in_backquotes(cells[2], names);
  add_names_in_backquotes(cells[4], names);
  return names;
}

}  // namespace

std::vector<DocumentedKey> documented_keys(std::string_view page) {
  std::vector<DocumentedKey> keys;
  std::istringstream lines{std::string(page)};
  bool is_table = false;
  for (std::string line; std::getline(lines, line);) {
    if (!line.starts_with("|")) is_table = false;
    if (line == kHeader) is_table = true;
    if (!is_table || !line.starts_with("| `")) continue;
    const std::vector<std::string> cells = cells_of(line);
    if (cells.size() != 5) continue;
    DocumentedKey key{without_markup(cells[0]), cells[1], without_markup(cells[4]),
                      choices_of(cells)};
    const auto same = std::ranges::find(keys, key.path, &DocumentedKey::path);
    if (same == keys.end()) keys.push_back(std::move(key));
  }
  return keys;
}

}  // namespace lacuna
