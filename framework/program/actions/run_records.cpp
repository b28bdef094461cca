#include "lacuna/framework/program/actions/run_records.h"

#include <fstream>
#include <iterator>
#include <limits>
#include <optional>
#include <utility>

#include "lacuna/framework/io/yaml.h"
#include "lacuna/framework/records/json_text.hpp"
#include "lacuna/framework/report/run_data.hpp"
#include "lacuna/framework/report/run_search.hpp"

namespace lacuna {
namespace {

// Puts the scalars of an event, and of what is below it, into the row that is the columns' last.
void put(const Config& node, const std::string& path, size_t row, MetricColumns& into) {
  for (const auto& [key, value] : node.children()) {
    const std::string name = path.empty() ? key : path + "." + key;
    if (value.is_map()) {
      put(value, name, row, into);
    } else if (value.is_number()) {
      auto& column = into.numbers[name];
      column.resize(row, std::numeric_limits<double>::quiet_NaN());
      column.push_back(value.as<double>());
    } else if (value.is_scalar()) {
      auto& column = into.texts[name];
      column.resize(row);
      column.push_back(value.text());
    }
  }
}

}  // namespace

std::map<std::string, MetricColumns> read_metrics(const std::string& run_dir) {
  require_run(run_dir);
  std::map<std::string, MetricColumns> splits;
  std::map<std::string, size_t> rows;
  std::ifstream stream(run_dir + "/metrics.jsonl", std::ios::binary);
  for (std::string line; std::getline(stream, line);) {
    const std::optional<Config> event = parse_json(line);
    if (!event || !event->is_map() || !event->peek("split").is_scalar()) continue;
    Config values = event->clone();
    const std::string split = values.peek("split").text();
    values.erase("split");
    put(values, "", rows[split]++, splits[split]);
  }
  for (auto& [split, columns] : splits) {
    for (auto& [name, column] : columns.numbers) {
      column.resize(rows[split], std::numeric_limits<double>::quiet_NaN());
    }
    for (auto& [name, column] : columns.texts) column.resize(rows[split]);
  }
  return splits;
}

Config read_summary(const std::string& run_dir) {
  require_run(run_dir);
  std::ifstream stream(run_dir + "/summary.json", std::ios::binary);
  const std::string text{std::istreambuf_iterator<char>(stream), {}};
  return parse_json(text).value_or(Config());
}

Config read_run_config(const std::string& run_dir) {
  require_run(run_dir);
  return load_yaml(run_dir + "/config.yaml");
}

std::vector<KeptPicture> newest_masks(const std::string& run_dir, int64_t most_pixels_of_a_side) {
  RunData run = read_run(run_dir, most_pixels_of_a_side);
  std::vector<KeptPicture> newest;
  for (LayerData& layer : run.layers) {
    if (layer.pictures.empty()) continue;
    const double density = layer.actual.empty() ? std::numeric_limits<double>::quiet_NaN()
                                                : layer.actual.values.back();
    newest.push_back({.parameter = layer.name,
                      .step = layer.picture_steps.back(),
                      .density = density,
                      .png = std::move(layer.pictures.back().png)});
  }
  return newest;
}

}  // namespace lacuna
