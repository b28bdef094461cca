#include "lacuna/framework/train/checks/column_checks.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <map>
#include <set>
#include <string_view>
#include <vector>

#include "lacuna/framework/config/names.h"
#include "lacuna/framework/core/error.h"
#include "lacuna/framework/io/yaml.h"

namespace lacuna {
namespace {

std::vector<std::string> quoted(const std::vector<std::string>& names) {
  std::vector<std::string> result;
  for (const std::string& name : names) result.push_back("'" + name + "'");
  return result;
}

std::string listed(const std::vector<std::string>& names) {
  return join_foreign(quoted(names), ", ");
}

std::string renamed(const CsvColumns& trained, const CsvColumns& found) {
  std::vector<std::string> before, now;
  const size_t common = std::min(trained.inputs.size(), found.inputs.size());
  for (size_t i = 0; i < std::max(trained.inputs.size(), found.inputs.size()); ++i) {
    if (i < common && trained.inputs[i] == found.inputs[i]) continue;
    if (i < trained.inputs.size()) before.push_back(trained.inputs[i]);
    if (i < found.inputs.size()) now.push_back(found.inputs[i]);
  }
  std::string text;
  if (!before.empty() || !now.empty()) {
    text = fmt::format("the table has the columns {}, but the model was trained on {}",
                       now.empty() ? "(none)" : listed(now),
                       before.empty() ? "(none)" : listed(before));
  }
  if (trained.label != found.label && !trained.label.empty() && !found.label.empty()) {
    text += fmt::format("{}the label is '{}', and was '{}'", text.empty() ? "" : "; ", found.label,
                        trained.label);
  }
  return text;
}

// Categories are features by their order, as columns are.
std::string other_categories(const CsvColumns& trained, const CsvColumns& found) {
  const auto none = [](const CsvColumns& columns) {
    return columns.inputs.empty() && columns.categories.empty();
  };
  if (none(trained) || none(found)) return "";
  const auto in_words = [](const CsvCategories& all, const std::string& column) {
    const auto categories = all.find(column);
    return categories == all.end() ? std::string("none") : listed(categories->second);
  };
  std::set<std::string> names;
  for (const auto* all : {&trained.categories, &found.categories}) {
    for (const auto& [column, categories] : *all) names.insert(column);
  }
  for (const std::string& column : names) {
    const std::string before = in_words(trained.categories, column),
                      now = in_words(found.categories, column);
    if (before == now) continue;
    return fmt::format("the column '{}' has other categories than in training: {}; expected {}",
                       column, now, before);
  }
  return "";
}

}  // namespace

ColumnDifference compare_columns(const CsvColumns& trained, const CsvColumns& found) {
  const std::string categories = other_categories(trained, found);
  if (trained.inputs.empty() || found.inputs.empty()) return {.moved = categories};
  std::map<std::string_view, size_t> places;
  for (size_t i = 0; i < found.inputs.size(); ++i) places[found.inputs[i]] = i;
  for (size_t i = 0; i < trained.inputs.size(); ++i) {
    const auto place = places.find(trained.inputs[i]);
    const bool is_label = place == places.end() && trained.inputs[i] == found.label;
    if (!is_label && (place == places.end() || place->second == i)) continue;
    const std::string where =
        is_label ? "is the label" : fmt::format("is number {}", place->second + 1);
    return {.moved = fmt::format(
                "the columns are in another order than in training: '{}' was number {}, and {}; "
                "expected {}, in this order",
                trained.inputs[i], i + 1, where, listed(trained.inputs))};
  }
  if (!categories.empty()) return {.moved = categories};
  return {.renamed = renamed(trained, found)};
}

std::string to_json(const CsvColumns& columns) {
  Config json =
      Config::map({{"inputs", Config::from_value(columns.inputs)}, {"label", columns.label}});
  if (!columns.categories.empty()) {
    Config categories = Config::map();
    for (const auto& [column, names] : columns.categories) {
      categories.set(column, Config::from_value(names));
    }
    json.set("categories", categories);
  }
  return json.to_json();
}

CsvColumns columns_from_json(const std::string& json) {
  const Config saved = parse_yaml(json, "columns");
  CsvColumns columns{.inputs = saved.required<std::vector<std::string>>("inputs"),
                     .label = saved.required<std::string>("label")};
  if (saved.has("categories")) {
    for (const auto& [column, names] : saved.get("categories").entries()) {
      columns.categories[column] = names.as<std::vector<std::string>>();
    }
  }
  return columns;
}

void require_same_columns(const std::string& what, const CsvColumns& trained,
                          const CsvColumns& found) {
  const ColumnDifference difference = compare_columns(trained, found);
  if (!difference.moved.empty()) throw DataError(what + ": " + difference.moved);
  if (!difference.renamed.empty()) throw DataError(what + ": " + difference.renamed);
}

}  // namespace lacuna
