// `data.add_channel`: grey images [rows, columns] as examples [1, rows, columns], which
// convolutions need.
#pragma once

#include "lacuna/framework/config/config.h"
#include "lacuna/framework/core/shape.h"
#include "lacuna/framework/data/load_data.h"

namespace lacuna {

/// The splits with a channel, if `data.add_channel` is true; else as they are. *Errors:*
/// ConfigError if examples are not arrays [rows, columns].
DataSplits with_added_channel(const Config& data, DataSplits splits);

/// Whether `expected` is `found` with one channel: [1, 28, 28] and [28, 28].
bool lacks_channel(const Shape& found, const Shape& expected);

}  // namespace lacuna
