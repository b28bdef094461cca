// Small parameters with known values and gradients.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "lacuna/framework/param/parameter.h"

namespace lacuna {

inline ParameterPtr make_parameter(const std::string& name, const std::vector<float>& values) {
  const Shape shape{static_cast<int64_t>(values.size())};
  auto parameter = std::make_shared<Parameter>(shape, Initializer::constant(0.0));
  parameter->set_name(name);
  parameter->assign(Tensor::from(shape, values));
  return parameter;
}

inline void set_gradient(const ParameterPtr& parameter, const std::vector<float>& gradient) {
  parameter->zero_gradient();
  parameter->accumulate(Tensor::from(parameter->shape(), gradient));
}

}  // namespace lacuna
