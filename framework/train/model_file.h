// A model's weights in a file, for programs that train without a configuration.
#pragma once

#include <string>

#include "lacuna/framework/nn/module.h"

namespace lacuna {

/// Writes the model's state (values, masks, what modules keep besides) as a checkpoint, whole or
/// not at all. No optimizer, no data, no configuration: a run cannot be resumed from it, while
/// `lacuna inspect` and h5py read it, and `init_from` starts from it. *Errors:* StateError with
/// path and reason.
void save_model(const std::string& path, const Module& model);

/// Gives the model the values and masks of a file that `save_model` or `lacuna train` wrote; of a
/// run folder those of its newest good checkpoint. *Errors:* CheckpointError, before anything is
/// changed, when the file is no good checkpoint, or of another model (with the differences).
void load_weights(const std::string& file_or_run_folder, Module& model);

}  // namespace lacuna
