// JSON text into a Config and back, and text made fit to stand in a file that must be UTF-8.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "lacuna/framework/config/config.h"

namespace lacuna {

/// The value that a JSON text holds; nothing when it is not JSON (cut off, not UTF-8, nested deeper
/// than 64). Of a key that comes twice the last value counts.
std::optional<Config> parse_json(std::string_view text);

/// A report as JSON. *Errors:* Error that names a number that is NaN or infinite, for which JSON
/// has no word.
std::string json_text(const Config& report);

/// The text with what is not UTF-8, and control characters but tab and line ends, replaced by
/// U+FFFD.
std::string clean_utf8(std::string_view text);

}  // namespace lacuna
