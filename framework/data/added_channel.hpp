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

/// The shape as which a model that was trained on examples of the shape `trained` takes others:
/// `trained` if they lack only its one channel ([28, 28] for [1, 28, 28]), else `found`.
Shape with_channel_of(const Shape& trained, const Shape& found);

}  // namespace lacuna
