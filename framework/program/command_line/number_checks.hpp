// What is wrong with a number on a command line, in words; the parser alone takes what is too large
// for the largest, and 010 for 8.
#pragma once

#include <cstdint>
#include <string>

namespace lacuna {

/// Empty where `text` is a whole number from `least` to `most`, as a configuration may have it
/// (1000, 1e3), and `text` is then its digits; else what was expected, with `what` for its name,
/// and what was found.
std::string whole_number_error(std::string& text, const std::string& what, int64_t least,
                               int64_t most);

/// Empty where `text` is a finite number of at least 0, as a configuration may have it; else what
/// was expected and found.
std::string finite_number_error(const std::string& text);

}  // namespace lacuna
