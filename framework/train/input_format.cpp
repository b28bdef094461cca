#include "lacuna/framework/train/input_format.h"

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "lacuna/framework/config/config.h"
#include "lacuna/framework/core/error.h"
#include "lacuna/framework/io/yaml.h"
#include "lacuna/framework/train/checks/column_checks.hpp"

namespace lacuna {

namespace {

std::string scaling(const std::vector<double>& mean, const std::vector<double>& std) {
  return Config::map({{"mean", Config::from_value(mean)}, {"std", Config::from_value(std)}})
      .to_json();
}

}  // namespace

InputFormat InputFormat::of(const DataSplits& data) {
  return {.example_shape = data.train->example_shape(),
          .normalization = data.normalization,
          .class_names = data.train->class_names(),
          .tokenizer = data.train->tokenizer(),
          .columns = data.columns,
          .label_column = data.label_column,
          .categories = data.categories,
          .fill = data.fill,
          .target_mean = data.target_mean,
          .target_std = data.target_std};
}

KnownData InputFormat::known() const {
  return {.num_classes = static_cast<int64_t>(class_names.size()),
          .class_names = class_names,
          .tokenizer = tokenizer,
          .columns = columns,
          .label_column = label_column,
          .example_shape = example_shape,
          .categories = categories,
          .fill = fill};
}

StateDict InputFormat::state_dict() const {
  const std::span<const int64_t> sizes = example_shape.sizes();
  StateDict state;
  state.set("example_shape", std::vector<int64_t>(sizes.begin(), sizes.end()));
  state.set("normalization", scaling(normalization.mean, normalization.std));
  if (!class_names.empty()) {
    state.set("class_names", Config::from_value(class_names).to_json());
  }
  if (tokenizer != nullptr) state.set("tokenizer", tokenizer->to_json());
  if (!columns.empty() || !categories.empty()) {
    state.set("columns", to_json(CsvColumns{
                             .inputs = columns, .label = label_column, .categories = categories}));
  }
  if (!fill.empty()) state.set("missing", Config::from_value(fill).to_json());
  if (!target_std.empty()) state.set("target_normalization", scaling(target_mean, target_std));
  return state;
}

InputFormat InputFormat::from_state(const StateDict& state) {
  InputFormat format;
  try {
    format.example_shape = Shape(state.get<std::vector<int64_t>>("example_shape"));
    const Config saved = parse_yaml(state.get<std::string>("normalization"), "normalization");
    format.normalization = {.mean = saved.required<std::vector<double>>("mean"),
                            .std = saved.required<std::vector<double>>("std")};
    if (state.contains("class_names")) {
      format.class_names = parse_yaml(state.get<std::string>("class_names"), "class_names")
                               .as<std::vector<std::string>>();
    }
    if (state.contains("columns")) {
      CsvColumns saved_columns = columns_from_json(state.get<std::string>("columns"));
      format.columns = std::move(saved_columns.inputs);
      format.label_column = std::move(saved_columns.label);
      format.categories = std::move(saved_columns.categories);
    }
    if (state.contains("missing")) {
      format.fill =
          parse_yaml(state.get<std::string>("missing"), "missing").as<std::vector<double>>();
      if (static_cast<int64_t>(format.fill.size()) != format.example_shape.numel()) {
        throw CheckpointError(
            "'data/missing' in the saved state has another number of values than the examples have "
            "features");
      }
    }
    if (state.contains("target_normalization")) {
      const Config targets =
          parse_yaml(state.get<std::string>("target_normalization"), "target_normalization");
      format.target_mean = targets.required<std::vector<double>>("mean");
      format.target_std = targets.required<std::vector<double>>("std");
      if (format.target_mean.size() != format.target_std.size()) {
        throw CheckpointError(
            "'data/target_normalization' in the saved state has another number of "
            "means than of standard deviations");
      }
    }
    if (state.contains("tokenizer")) {
      format.tokenizer = tokenizer_from_json(state.get<std::string>("tokenizer"));
    }
  } catch (const ConfigError& error) {
    throw CheckpointError(std::string("the checkpoint's data format cannot be read: ") +
                          error.what());
  } catch (const DataError& error) {
    throw CheckpointError(std::string("the checkpoint's tokenizer cannot be read: ") +
                          error.what());
  } catch (const ShapeError& error) {
    throw CheckpointError(std::string("'data/example_shape' in the saved state: ") + error.what());
  }
  return format;
}

Tensor in_target_unit(const Tensor& outputs, const InputFormat& format) {
  if (format.target_std.empty()) return outputs;
  Tensor rows = outputs.to(Order::RowMajor).clone();
  const size_t columns = format.target_std.size();
  float* values = rows.mutable_data();
  for (size_t i = 0; i < static_cast<size_t>(rows.numel()); ++i) {
    const size_t j = i % columns;
    values[i] = static_cast<float>(values[i] * format.target_std[j] + format.target_mean[j]);
  }
  return rows;
}

}  // namespace lacuna
