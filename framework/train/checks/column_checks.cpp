#include "lacuna/framework/train/checks/column_checks.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <map>
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
    text = fmt::format("the table has the columns {} where the model was trained on {}",
                       now.empty() ? "(none)" : listed(now),
                       before.empty() ? "(none)" : listed(before));
  }
  if (trained.label != found.label && !trained.label.empty() && !found.label.empty()) {
    text += fmt::format("{}the label is '{}', and was '{}'", text.empty() ? "" : "; ", found.label,
                        trained.label);
  }
  return text;
}

}  // namespace

ColumnDifference compare_columns(const CsvColumns& trained, const CsvColumns& found) {
  if (trained.inputs.empty() || found.inputs.empty()) return {};
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
  return {.renamed = renamed(trained, found)};
}

std::string to_json(const CsvColumns& columns) {
  return Config::map({{"inputs", Config::from_value(columns.inputs)}, {"label", columns.label}})
      .to_json();
}

CsvColumns columns_from_json(const std::string& json) {
  const Config saved = parse_yaml(json, "columns");
  return {.inputs = saved.required<std::vector<std::string>>("inputs"),
          .label = saved.required<std::string>("label")};
}

void require_same_columns(const std::string& what, const CsvColumns& trained,
                          const CsvColumns& found) {
  const ColumnDifference difference = compare_columns(trained, found);
  if (!difference.moved.empty()) throw DataError(what + ": " + difference.moved);
  if (!difference.renamed.empty()) throw DataError(what + ": " + difference.renamed);
}

}  // namespace lacuna
