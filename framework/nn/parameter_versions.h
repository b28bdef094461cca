// ParameterVersions: notices changes of parameters that something else was computed from.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "lacuna/framework/core/error.h"
#include "lacuna/framework/nn/module.h"

namespace lacuna {

/// Parameters as they were when something else was computed from them, as the int8 weights of a
/// layer.
class ParameterVersions {
 public:
  /// Of no parameter.
  ParameterVersions() = default;
  /// Of the parameters as they are now; null pointers are skipped.
  explicit ParameterVersions(std::initializer_list<ParameterPtr> parameters) {
    for (const ParameterPtr& parameter : parameters) {
      if (parameter != nullptr) seen_.emplace_back(parameter, parameter->version());
    }
  }

  /// *Errors:* StateError if the values or the pattern of one have changed since. `does` is what
  /// the layer does with the result: "runs in int8".
  void require_unchanged(const Module& layer, std::string_view does) const {
    for (const auto& [parameter, version] : seen_) {
      if (parameter->version() != version) fail(*parameter, layer, does);
    }
  }

 private:
  [[noreturn]] static void fail(const Parameter& parameter, const Module& layer,
                                std::string_view does) {
    throw StateError(
        "layer '" + layer.path() + "' (" + std::string(layer.type()) + ") " + std::string(does) +
        ", and its parameter '" + parameter.name() +
        "' has changed since; change the float32 model instead, and quantize it again");
  }

  std::vector<std::pair<ParameterPtr, uint64_t>> seen_;
};

}  // namespace lacuna
