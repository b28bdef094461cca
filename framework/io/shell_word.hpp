// Words of commands that messages print for the user to copy.
#pragma once

#include <string>

namespace lacuna {

/// The text as one word of a POSIX shell: as it is if no character means anything to a shell, else
/// in single quotes. What is not plain ASCII is quoted.
std::string shell_word(const std::string& text);

}  // namespace lacuna
