// The content of a table's fields: numbers, dates, and missing values.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace lacuna {

/// The field without the spaces around it.
std::string_view trimmed_field(std::string_view text);

/// The whole field as a number, or nothing; infinite where it is beyond float32.
std::optional<double> parse_field(std::string_view text);

/// Whether a field stands for a value that is missing: it is empty or, whatever the case, one of
/// NA, N/A, #N/A, NaN, NaT, null, none, <NA> and ?.
bool is_missing_field(std::string_view text);

/// A date, and the time of day if there is one, in days since the beginning of 1970 (UTC), or
/// nothing. Without a format: as ISO 8601 writes it, 2024-03-01 or 2024-03-01T12:30:05.25+01:00,
/// with a space for the T, the seconds and the zone (UTC) as needed. A format is made of %Y, %y,
/// %m, %b, %B, %d, %H, %M and %S, as strptime(3) has them, and of what stands between these.
std::optional<double> parse_date(std::string_view text, const std::string& format = "");

/// Whether parse_date can take a format: it has year, month and day, and nothing unknown.
bool is_date_format(const std::string& format);

}  // namespace lacuna
