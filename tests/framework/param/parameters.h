// Parameters, patterns and tensors that the tests of parameters share.
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "lacuna/framework/param/parameter.h"

namespace lacuna {

inline ParameterPtr named(const Shape& shape, const Initializer& initializer, std::string name) {
  auto parameter = std::make_shared<Parameter>(shape, initializer);
  parameter->set_name(std::move(name));
  return parameter;
}

inline PatternPtr keeping(const Shape& shape, const std::vector<int64_t>& positions) {
  BitMask mask = BitMask::zeros(shape.numel());
  for (const int64_t position : positions) mask.set(position);
  return Pattern::masked(shape, mask);
}

inline Tensor counted(const Shape& shape) {
  Tensor tensor = Tensor::empty(shape);
  for (int64_t i = 0; i < tensor.numel(); ++i) tensor.mutable_data()[i] = static_cast<float>(i + 1);
  return tensor;
}

}  // namespace lacuna
