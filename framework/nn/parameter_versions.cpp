#include "lacuna/framework/nn/parameter_versions.h"

#include <fmt/core.h>

#include "lacuna/framework/core/error.h"

namespace lacuna {

void ParameterVersions::fail(const Parameter& parameter, const Module& layer,
                             std::string_view does) {
  throw StateError(fmt::format(
      "layer '{}' ({}) {}, and its parameter '{}' has changed since; change the float32 "
      "model instead, and quantize it again",
      layer.path(), layer.type(), does, parameter.name()));
}

}  // namespace lacuna
