// best.h5: whether it is the best checkpoint of the run in whose folder it lies.
#pragma once

#include <optional>
#include <string>

#include "lacuna/framework/io/checkpoint.h"
#include "lacuna/framework/train/runs/run_folder.h"

namespace lacuna {

/// Why a best.h5 is not the best evaluation that another checkpoint of its run has recorded:
/// another seed, step or validation loss, in words that follow "it". Empty where it is, where an
/// older version recorded nothing to compare it with, and where the other checkpoint was saved
/// before the evaluation of the same step.
std::string misfit_of_best(const Checkpoint& best, const Checkpoint& recorded);

/// best.h5 of a folder where run, step and loss fit the newest good checkpoint, or, of a later
/// evaluation than that, metrics.jsonl. Otherwise, and where it is damaged, nothing, and a warning
/// is logged. *Cost:* reads both checkpoints.
std::optional<CheckpointFile> fitting_best(const RunFolder& folder);

/// Renames a best.h5 that is not the best of the course that a run takes from here on to
/// best.h5.stale, and logs it. `from`: the checkpoint that the run goes on from; null: it begins
/// again. A damaged one stays. *Errors:* StateError when it cannot be renamed.
void set_stale_best_aside(const RunFolder& folder, const Checkpoint* from);

/// Removes best.h5.stale where it is the checkpoint that has just been written to best.h5: a killed
/// run that was resumed has made it again. *Cost:* reads it, if there is one.
void remove_remade_best(const RunFolder& folder, const Checkpoint& best);

/// Renames best.h5, if there is one. `why` follows its path in the log. *Errors:* StateError.
void set_best_aside(const RunFolder& folder, const std::string& why);

}  // namespace lacuna
