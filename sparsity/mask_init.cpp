#include "lacuna/sparsity/mask_init.h"

#include <cmath>
#include <utility>
#include <vector>

#include "lacuna/framework/core/error.h"
#include "lacuna/framework/core/names.h"
#include "lacuna/sparsity/selection.h"

namespace lacuna {
namespace {

BitMask random_mask(const MaskInitRequest& r) {
  const Shape& shape = r.parameter.shape();
  return grow_random(CounterRng(r.seed, r.parameter.name() + "/init_mask"), r.nnz / r.groups.count,
                     BitMask::zeros(shape.numel()), GroupIndex(r.groups, shape));
}

BitMask topk_mask(const MaskInitRequest& r) {
  const Tensor values = r.parameter.to_dense();
  return top_k(magnitudes(values.storage()), r.nnz / r.groups.count, BitMask::ones(values.numel()),
               GroupIndex(r.groups, values.shape()));
}

BitMask from_zeros_mask(const MaskInitRequest& r) {
  const Tensor values = r.parameter.to_dense();
  BitMask mask = BitMask::zeros(values.numel());
  for (int64_t i = 0; i < values.numel(); ++i) {
    if (values.data()[i] != 0.0f) mask.set(i);
  }
  return mask;
}

BitMask checkerboard(const MaskInitRequest& r) {
  const Shape& shape = r.parameter.shape();
  const int64_t rows = shape.rank() == 0 ? 1 : shape[0];
  return checkerboard_mask(rows, rows == 0 ? 0 : shape.numel() / rows, r.sparsity);
}

const std::vector<std::pair<std::string, InitMethod::Function>>& methods() {
  static const std::vector<std::pair<std::string, InitMethod::Function>> all = {
      {"random", random_mask},
      {"topk", topk_mask},
      {"from_zeros", from_zeros_mask},
      {"checkerboard", checkerboard}};
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

InitMethod::InitMethod(Function function) : name_("custom"), function_(std::move(function)) {}

InitMethod InitMethod::from_config(const Config& config) {
  if (config.is_null()) return {};
  try {
    return InitMethod(config.as<std::string>());
  } catch (const ConfigError& error) {
    if (!config.is_scalar()) throw;
    config.error(error.what());
  }
}

BitMask InitMethod::make(const MaskInitRequest& request) const {
  BitMask mask = function_(request);
  if (mask.size() != request.parameter.numel()) {
    throw ShapeError("init_method '" + name_ + "' made a mask of " + std::to_string(mask.size()) +
                     " positions for parameter '" + request.parameter.name() + "' of shape " +
                     request.parameter.shape().to_string());
  }
  return mask;
}

BitMask checkerboard_mask(int64_t rows, int64_t columns, float sparsity) {
  BitMask mask = BitMask::zeros(rows * columns);
  const float density = 1.0f - sparsity;
  if (columns == 0 || density <= 0.0f) return mask;
  const auto step = [&](int64_t i) {
    return std::floor(static_cast<double>(static_cast<float>(i) * density) + 1e-5);
  };
  const double d = density;
  const auto period = static_cast<int64_t>(std::ceil(static_cast<double>(columns) / d + 1e-5));
  const int64_t length = columns + period - 1;
  const auto shift = static_cast<int64_t>(std::floor(1.0 / d - 1e-5));
  for (int64_t r = 0; r < rows; ++r) {
    for (int64_t j = 0; j < columns; ++j) {
      const int64_t i = (j + r * shift) % length;  // (j − r·o) with o = −shift
      if (step(i + 1) != step(i)) mask.set(r * columns + j);
    }
  }
  return mask;
}

}  // namespace lacuna
