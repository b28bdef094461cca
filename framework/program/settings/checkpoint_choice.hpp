// The checkpoint that a command's argument means.
#pragma once

#include <functional>
#include <string>

#include "lacuna/framework/io/checkpoint.h"

namespace lacuna {

/// A file itself; of a run folder the best that is kept, or the last where there is none or `last`
/// asks for it. Where the best is kept, `report_line` (if not null) receives a line on which of the
/// two is taken. *Errors:* CheckpointError; as `require_run_for_last`.
CheckpointFile choose_checkpoint(const std::string& file_or_run_folder, bool last,
                                 const std::function<void(const std::string&)>& report_line);

/// *Errors:* ConfigError where `last` is asked for of a file, which has no other checkpoints.
void require_run_for_last(const std::string& file_or_run_folder, bool last);

}  // namespace lacuna
