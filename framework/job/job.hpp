// The job that this process is part of, where a launcher of MPI programs has started it.
#pragma once

#include <memory>
#include <string>

#include "lacuna/framework/config/config.h"
#include "lacuna/framework/distributed/communicator.h"

namespace lacuna {

/// Joins the job, the first time; null without a launcher. Of all processes but the first, only
/// errors are shown from then on. *Errors:* StateError.
std::shared_ptr<Communicator> enter_job();

/// Says goodbye, so that the launcher sees an end in order. Collective. Nothing outside of a job.
void leave_job();

/// An error's message with its process: "process 3 on node7: …", also before the job is joined.
/// Outside of a job of several, the message as it is.
std::string naming_process(const std::string& message);

/// Waits a moment in all processes but the first: if all have the same error, the first one has
/// reported it and the others are gone before they do. Also before the job is joined.
void let_first_speak();

/// Ends the whole job for an error of this process, the first one first (`let_first_speak`).
/// Returns outside of a job of several. `say` is called before the end.
void end_job(int exit_code, const std::string& message, void (*say)(const std::string&));

/// Notices what would make processes wait for each other in vain, or their numbers differ: what
/// they are to do (a wrapper of the program may ask each node on its own whether a run is there),
/// versions, the revision of their arithmetic, processors, instruction sets, dense products, and
/// the configurations that they have read. Of different builds of one version a warning is logged.
/// *Errors:* StateError that names it and the processes. Collective.
void require_same_program(Communicator& job);
void require_same_command(Communicator& job, const std::string& what);
void require_same_config(Communicator& job, const Config& config);

/// The first process's configuration, in all. Collective.
Config config_of_first(Communicator& job, const Config& own);

}  // namespace lacuna
