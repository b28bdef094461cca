// What is of the whole process: its standard streams, and its end.
#pragma once

#include <exception>
#include <string>

namespace lacuna {

/// To be called first. Where the program was started with standard streams closed, their
/// descriptors would be those of the next files it opens, and messages would be written into them.
/// What is put there instead can be neither read nor written, as a stream that is closed.
void take_standard_descriptors();

/// Says what went wrong, in the run's log too where there is one, and returns the exit code. Of
/// several processes it ends all.
int fail(const std::string& message, int code);
/// The same of an exception: its message, and the exit code of its kind.
int fail_by(const std::exception_ptr& problem);

}  // namespace lacuna
