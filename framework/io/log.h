// The program's log: plain lines to the console and to a file. Silent until its destination is set.
#pragma once

#include <string>
#include <string_view>

namespace lacuna {

/// Details are written to a run's log file, and to the console in verbose mode.
enum class LogLevel { Detail, Info, Warning, Error, Off };

/// Writes messages from `least` on to the standard error output, without time stamps; warnings and
/// errors are marked as such.
void log_to_console(LogLevel least);

/// Appends all messages to a file too, each with date, time and level, and flushed at once.
/// *Errors:* StateError when the file cannot be opened, or is a link. A message that cannot be
/// written later is lost; the first time, the console reports it.
void log_to_file(const std::string& path);

/// Closes the file; the console continues.
void stop_logging_to_file();
/// Ends both.
void stop_logging();

void log_detail(std::string_view text);
void log_info(std::string_view text);
/// Logs only to the file, for lines that the console shows in another form.
void log_info_to_file(std::string_view text);
void log_warning(std::string_view text);
void log_error(std::string_view text);

}  // namespace lacuna
