// What is of the whole process: its standard streams, some options of a configuration, and its end.
#pragma once

#include <exception>
#include <string>

#include "lacuna/framework/config/config.h"

namespace lacuna {

/// To be called first. Where the program was started with standard streams closed, their
/// descriptors would be those of the next files it opens, and messages would be written into them.
/// What is put there instead can be neither read nor written, as a stream that is closed.
void take_standard_descriptors();

/// Sets the number of threads (`train.threads`) and what happens where a layout lacks a product
/// (`train.layout_fallback`), of which the log is told. To be called before the experiment is
/// built, which measures layouts with these threads. *Errors:* ConfigError of the `train` section.
void apply_process_options(const Config& config);

/// Says what went wrong, in the run's log too where there is one, and returns the exit code. Of
/// several processes it ends all.
int fail(const std::string& message, int code);
/// The same of an exception: its message, and the exit code of its kind.
int fail_by(const std::exception_ptr& problem);

}  // namespace lacuna
