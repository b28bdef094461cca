// Weight initialization as PyTorch defines it.
#pragma once

#include <cstdint>
#include <numbers>
#include <string_view>

#include "lacuna/framework/core/config.h"
#include "lacuna/framework/param/initializer.h"

namespace lacuna {

struct KaimingOptions {
  int64_t fan_in = 0;                 ///< inputs of one output; 0 gives zeros
  double gain = std::numbers::sqrt2;  ///< √2 for ReLU, 1 for a linear layer
};

/// Uniform within ± gain √(3 / fan_in). *Source:* He et al., arXiv:1502.01852.
Initializer kaiming_uniform(const KaimingOptions& options);
/// Normal with standard deviation gain / √fan_in. *Source:* the same.
Initializer kaiming_normal(const KaimingOptions& options);

struct XavierOptions {
  int64_t fan_in = 0;
  int64_t fan_out = 0;
  double gain = 1.0;
};

/// Uniform within ± gain √(6 / (fan_in + fan_out)). *Source:* Glorot and Bengio, AISTATS 2010.
Initializer xavier_uniform(const XavierOptions& options);
/// Normal with standard deviation gain √(2 / (fan_in + fan_out)). *Source:* the same.
Initializer xavier_normal(const XavierOptions& options);

/// Uniform within ± 1 / √fan_in: what PyTorch's Linear draws weight and bias from (there as
/// kaiming_uniform with a = √5).
Initializer default_linear(int64_t fan_in);

/// How a layer draws its weight.
enum class WeightInit {
  Default,         ///< default_linear
  KaimingUniform,  ///< with the gain of ReLU
  KaimingNormal,   ///< with the gain of ReLU
  XavierUniform,
  XavierNormal,
  Zeros,
};

/// The initializer of a weight [fan_out, fan_in].
Initializer make_initializer(WeightInit init, int64_t fan_in, int64_t fan_out);

/// The value of `key`: default, kaiming_uniform, kaiming_normal, xavier_uniform, xavier_normal or
/// zeros; `default` when it is absent. *Errors:* ConfigError with the nearest name.
WeightInit read_weight_init(const Config& options, std::string_view key);

}  // namespace lacuna
