// The options of a configuration that are of the whole process.
#pragma once

#include "lacuna/framework/core/config.h"

namespace lacuna {

/// Sets the number of threads (`train.threads`) and what happens where a layout lacks a product
/// (`train.layout_fallback`), of which the log is told. To be called before the experiment is
/// built, which measures layouts with these threads. *Errors:* ConfigError of the `train` section.
void apply_process_options(const Config& config);

}  // namespace lacuna
