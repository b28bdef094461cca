#include "lacuna/framework/data/missing_values.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <span>

#include "lacuna/framework/core/error.h"

namespace lacuna {
namespace {

// Of one or more values.
double mean_of(const std::vector<float>& values) {
  double sum = 0.0;
  for (const float value : values) sum += static_cast<double>(value);
  return sum / static_cast<double>(values.size());
}

double median_of(std::vector<float>& values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::ranges::nth_element(values, middle);
  const auto upper = static_cast<double>(*middle);
  if (values.size() % 2 == 1) return upper;
  return 0.5 * (upper + static_cast<double>(*std::max_element(values.begin(), middle)));
}

// The column that a feature is of, as messages call it.
std::string column_of(const DataSplits& splits, size_t feature) {
  size_t end = 0;
  for (const std::string& name : splits.columns) {
    const auto categories = splits.categories.find(name);
    end += categories == splits.categories.end() ? 1 : categories->second.size();
    if (feature < end) return "the column '" + name + "'";
  }
  return fmt::format("input {}", feature);
}

// One for each feature, of those that are there in the examples at `indices`.
std::vector<double> measured_fill(const DataSplits& splits, const Examples& train,
                                  std::span<const int64_t> indices) {
  const std::vector<float>& inputs = std::get<1>(train.inputs);
  const auto features = static_cast<size_t>(train.example_shape.numel());
  std::vector<double> fill;
  std::vector<float> values;
  for (size_t feature = 0; feature < features; ++feature) {
    values.clear();
    for (const int64_t index : indices) {
      const float value = inputs[static_cast<size_t>(index) * features + feature];
      if (!std::isnan(value)) values.push_back(value);
    }
    if (values.empty()) {
      throw DataError(column_of(splits, feature) +
                      " has no value in any training example; leave it out (data.drop_columns)");
    }
    fill.push_back(splits.missing == Missing::Mean ? mean_of(values) : median_of(values));
  }
  return fill;
}

}  // namespace

void fill_missing(const std::vector<double>& fill, Examples& examples) {
  std::vector<float>& inputs = std::get<1>(examples.inputs);
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (std::isnan(inputs[i])) inputs[i] = static_cast<float>(fill[i % fill.size()]);
  }
}

void fill_missing(DataSplits& splits, const HoldOut& parts) {
  if (splits.missing == Missing::None) return;
  if (splits.missing != Missing::Given) {
    const auto& train = dynamic_cast<const ArrayDataset&>(*splits.train);
    splits.fill = measured_fill(splits, train.examples(), parts.staying());
  }
  for (auto* split : {&splits.train, &splits.validation, &splits.test}) {
    if (*split == nullptr) continue;
    Examples examples = dynamic_cast<const ArrayDataset&>(**split).examples();
    fill_missing(splits.fill, examples);
    *split = std::make_shared<const ArrayDataset>(std::move(examples));
  }
}

}  // namespace lacuna
