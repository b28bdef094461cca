// The layer `qkv`: three linear layers side by side, as attention takes them.
#pragma once

#include <vector>

#include "lacuna/framework/config/config.h"

namespace lacuna {

/// The three linear layers that a layer `qkv` stands for: called by its `names` (default query,
/// key, value), each with its `bias`, `init`, `init_fan_in`, `in_features` and `trainable`, and
/// with `out_features`, if given; the second and third instead with `kv_features`, if given. Marks
/// the layer as read. *Errors:* ConfigError at another key, with the nearest, and unless there are
/// three names.
std::vector<Config> linear_layers_of_qkv(const Config& layer);

}  // namespace lacuna
