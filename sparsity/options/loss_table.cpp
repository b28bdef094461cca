#include "lacuna/sparsity/options/loss_table.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "lacuna/framework/core/error.h"

namespace lacuna {
namespace {

constexpr int64_t kVersion = 1;

double finite_number(const Config& value) {
  if (!value.is_number() || !std::isfinite(value.as<double>())) value.fail("a finite number");
  return value.as<double>();
}

std::vector<double> finite_numbers(const Config& list) {
  if (!list.is_list()) list.fail("a list of numbers");
  std::vector<double> numbers;
  for (const Config& item : list.items()) numbers.push_back(finite_number(item));
  return numbers;
}

LossTable::Row read_row(const Config& config) {
  if (!config.is_map()) config.fail("a map of parameter, shape, sparsities and losses");
  LossTable::Row row{.parameter = config.required<std::string>("parameter"),
                     .shape = Shape(config.required<std::vector<int64_t>>("shape")),
                     .sparsities = finite_numbers(config.at("sparsities")),
                     .losses = finite_numbers(config.at("losses"))};
  const Config sparsities = config.at("sparsities");
  if (row.sparsities.empty()) sparsities.fail("at least one sparsity");
  for (size_t i = 0; i < row.sparsities.size(); ++i) {
    const double s = row.sparsities[i];
    if (!(s > 0.0 && s < 1.0) || (i > 0 && s <= row.sparsities[i - 1])) {
      sparsities.items()[i].fail("sparsities in (0, 1), each larger than the one before it");
    }
  }
  if (row.losses.size() != row.sparsities.size()) {
    config.at("losses").error(fmt::format("there are {} losses for {} sparsities",
                                          row.losses.size(), row.sparsities.size()));
  }
  return row;
}

}  // namespace

double LossTable::Curve::increase_at(double density) const {
  const auto after = std::ranges::lower_bound(densities, density);
  if (after == densities.end()) return increases.back();
  const auto i = static_cast<size_t>(after - densities.begin());
  if (i == 0) return increases.front();
  const double part = (density - densities[i - 1]) / (densities[i] - densities[i - 1]);
  return increases[i - 1] + part * (increases[i] - increases[i - 1]);
}

LossTable::Curve LossTable::curve(size_t index) const {
  const Row& row = rows[index];
  Curve curve{.densities = {1.0}, .increases = {0.0}};
  for (size_t i = 0; i < row.sparsities.size(); ++i) {
    curve.densities.push_back(1.0 - row.sparsities[i]);
    curve.increases.push_back(std::max(row.losses[i] - loss, curve.increases.back()));
  }
  std::ranges::reverse(curve.densities);
  std::ranges::reverse(curve.increases);
  return curve;
}

LossTable LossTable::of(const std::vector<std::string>& names,
                        const std::vector<Shape>& shapes) const {
  LossTable chosen{.loss = loss, .rows = {}};
  for (size_t i = 0; i < names.size(); ++i) {
    const auto row = std::ranges::find(rows, names[i], &Row::parameter);
    if (row == rows.end()) {
      throw ConfigError(fmt::format(
          "the table of losses has no row for '{}'; measure it for this model and param_filter",
          names[i]));
    }
    if (row->shape != shapes[i]) {
      throw ConfigError(
          fmt::format("the table of losses is of another model: '{}' has shape {} there, and {} "
                      "here",
                      names[i], row->shape.to_string(), shapes[i].to_string()));
    }
    chosen.rows.push_back(*row);
  }
  return chosen;
}

LossTable LossTable::from_config(const Config& table) {
  if (!table.is_map()) table.fail("a file loss_table.json, or a map as it has it");
  if (const auto version = table.required<int64_t>("version"); version != kVersion) {
    table.at("version").error(
        fmt::format("this is version {} of the table, and {} is read", version, kVersion));
  }
  LossTable result{.loss = finite_number(table.at("loss")), .rows = {}};
  const Config rows = table.at("rows");
  if (!rows.is_list()) rows.fail("a list of rows");
  for (const Config& row : rows.items()) {
    result.rows.push_back(read_row(row));
    const std::string& name = result.rows.back().parameter;
    if (std::ranges::count(result.rows, name, &Row::parameter) > 1) {
      row.at("parameter").error("there is another row for it");
    }
  }
  return result;
}

Config LossTable::to_config() const {
  Config list = Config::list();
  for (const Row& row : rows) {
    const std::vector<int64_t> shape(row.shape.sizes().begin(), row.shape.sizes().end());
    list.push_back(Config::map({{"parameter", row.parameter},
                                {"shape", Config::from_value(shape)},
                                {"sparsities", Config::from_value(row.sparsities)},
                                {"losses", Config::from_value(row.losses)}}));
  }
  return Config::map({{"version", kVersion}, {"loss", loss}, {"rows", list}});
}

std::vector<double> LossTable::default_sparsities() {
  return {0.4, 0.6, 0.7, 0.8, 0.85, 0.9, 0.95, 0.98, 0.995};
}

}  // namespace lacuna
