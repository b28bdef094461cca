#include "lacuna/sparsity/masks/mask_init.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

#include "lacuna/framework/config/names.h"
#include "lacuna/framework/core/error.h"
#include "lacuna/sparsity/masks/balanced_mask.hpp"
#include "lacuna/sparsity/masks/mask_selector.h"
#include "lacuna/sparsity/masks/scores.h"

namespace lacuna {
namespace {

MaskSet random_mask(const MaskInitRequest& r) {
  const Shape& shape = r.parameter.shape();
  return MaskSelector(r.groups, r.pattern, shape)
      .grow_random(CounterRng(r.seed, r.parameter.name() + "/init_mask"), r.nnz, MaskSet(shape));
}

MaskSet balanced(const MaskInitRequest& r) {
  const Shape& shape = r.parameter.shape();
  return MaskSet(shape, balanced_mask(CounterRng(r.seed, r.parameter.name() + "/init_mask"), shape,
                                      r.nnz, r.groups));
}

// Rows of the parameter's values: of one that has not been drawn nothing whole is ever made.
ScoreRows rows_of(const Parameter& parameter) {
  if (parameter.pattern()->stores_every_position()) {
    return [&parameter](std::span<const int64_t> rows, std::span<float> into) {
      parameter.read_rows(rows, into);
    };
  }
  return rows_of(parameter.to_dense());
}

MaskSet topk_mask(const MaskInitRequest& r) {
  const Shape& shape = r.parameter.shape();
  return MaskSelector(r.groups, r.pattern, shape)
      .grow_maximum(rows_of(r.parameter), r.nnz, MaskSet(shape));
}

MaskSet from_zeros_mask(const MaskInitRequest& r) {
  const ScoreRows values = rows_of(r.parameter);
  const int64_t columns = matrix_columns(r.parameter.shape());
  std::vector<float> row(static_cast<size_t>(columns));
  std::vector<int64_t> begin{0};
  std::vector<uint32_t> nonzero;
  for (int64_t i = 0; i < matrix_rows(r.parameter.shape()); ++i) {
    values(std::span(&i, 1), row);
    for (int64_t c = 0; c < columns; ++c) {
      if (row[static_cast<size_t>(c)] != 0.0f) nonzero.push_back(static_cast<uint32_t>(c));
    }
    begin.push_back(static_cast<int64_t>(nonzero.size()));
  }
  const Shape& shape = r.parameter.shape();
  return MaskSet(shape, Positions(shape, std::move(begin), std::move(nonzero)));
}

MaskSet inherited_mask(const MaskInitRequest& r) { return MaskSet(r.parameter.pattern()); }

MaskSet checkerboard(const MaskInitRequest& r) {
  const Shape& shape = r.parameter.shape();
  return MaskSet(
      shape, checkerboard_mask(matrix_rows(shape), matrix_columns(shape), r.sparsity).positions());
}

using Method = MaskSet (*)(const MaskInitRequest&);

const std::vector<std::pair<std::string, Method>>& methods() {
  static const std::vector<std::pair<std::string, Method>> all = {
      {"random", random_mask},         {"balanced", balanced},         {"topk", topk_mask},
      {"from_zeros", from_zeros_mask}, {"checkerboard", checkerboard}, {"inherit", inherited_mask}};
  return all;
}

}  // namespace

InitMethod::InitMethod(std::string name) : name_(std::move(name)) {
  std::vector<std::string> names;
  for (const auto& [known, function] : methods()) {
    if (known == name_) function_ = function;
    names.push_back(known);
  }
  if (!function_) {
    throw ConfigError("unknown init_method '" + name_ + "'; " + suggest_name(name_, names));
  }
}

InitMethod::InitMethod(Function function)
    : name_("custom"), function_([make = std::move(function)](const MaskInitRequest& request) {
        MaskSet mask = make(request);
        const Parameter& parameter = request.parameter;
        if (mask.size() != parameter.numel()) {
          throw ShapeError(fmt::format(
              "init_method 'custom' made a mask of {} positions for parameter '{}' of shape {}",
              mask.size(), parameter.name(), parameter.shape().to_string()));
        }
        return mask.of_shape(parameter.shape());
      }) {}

InitMethod InitMethod::from_config(const Config& config) {
  if (config.is_null()) return {};
  try {
    return InitMethod(config.as<std::string>());
  } catch (const ConfigError& error) {
    if (!config.is_scalar()) throw;
    config.error(error.what());
  }
}

MaskSet InitMethod::make(const MaskInitRequest& request) const { return function_(request); }

MaskSet checkerboard_mask(int64_t rows, int64_t columns, float sparsity) {
  const Shape shape{rows, columns};
  const float density = 1.0f - sparsity;
  if (columns == 0 || density <= 0.0f) return MaskSet(shape);
  const auto step = [&](int64_t i) {
    return std::floor(static_cast<double>(static_cast<float>(i) * density) + 1e-5);
  };
  const double d = density;
  const auto period = static_cast<int64_t>(std::ceil(static_cast<double>(columns) / d + 1e-5));
  const int64_t length = columns + period - 1;
  const auto shift = static_cast<int64_t>(std::floor(1.0 / d - 1e-5));
  std::vector<int64_t> ones;  // of the base row
  double before = step(0);
  for (int64_t i = 0; i < length; ++i) {
    const double now = step(i + 1);
    if (now != before) ones.push_back(i);
    before = now;
  }
  std::vector<int64_t> begin{0};
  std::vector<uint32_t> column;
  for (int64_t r = 0; r < rows; ++r) {
    // Element j is the base row's element (j − r·o) mod length, with o = −shift: a window of it
    // that may run past its end.
    const int64_t first = r * shift % length;
    for (const int64_t offset : {-first, length - first}) {
      auto one = std::ranges::lower_bound(ones, -offset);
      for (; one != ones.end() && *one + offset < columns; ++one) {
        column.push_back(static_cast<uint32_t>(*one + offset));
      }
    }
    begin.push_back(static_cast<int64_t>(column.size()));
  }
  return MaskSet(shape, Positions(shape, std::move(begin), std::move(column)));
}

}  // namespace lacuna
