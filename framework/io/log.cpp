// The one place that knows spdlog.
#include "lacuna/framework/io/log.h"

#include <spdlog/logger.h>
#include <spdlog/sinks/basic_file_sink.h>
#include <spdlog/sinks/stdout_sinks.h>

#include <memory>
#include <mutex>

#include "lacuna/framework/core/error.h"
#include "lacuna/framework/core/input_checks.hpp"
#include "lacuna/framework/io/storage/file_system.hpp"

namespace lacuna {
namespace {

struct Loggers {
  std::mutex mutex;  // of the two pointers
  std::shared_ptr<spdlog::logger> console;
  std::shared_ptr<spdlog::logger> file;
};

Loggers& loggers() {
  static Loggers all;
  return all;
}

spdlog::level::level_enum to_spdlog(LogLevel level) {
  switch (level) {
    case LogLevel::Detail:
      return spdlog::level::debug;
    case LogLevel::Info:
      return spdlog::level::info;
    case LogLevel::Warning:
      return spdlog::level::warn;
    case LogLevel::Error:
      return spdlog::level::err;
    case LogLevel::Off:
      break;
  }
  return spdlog::level::off;
}

enum class Sink { All, FileOnly };

void log(LogLevel level, std::string_view text, Sink sink = Sink::All) {
  std::shared_ptr<spdlog::logger> console, file;
  {
    const std::lock_guard lock(loggers().mutex);
    console = loggers().console;
    file = loggers().file;
  }
  const char* name = level == LogLevel::Warning ? "warning: "
                     : level == LogLevel::Error ? "error: "
                                                : "";
  const spdlog::string_view_t message(text.data(), text.size());
  if (file) file->log(to_spdlog(level), "{}", message);
  if (console && sink == Sink::All) console->log(to_spdlog(level), "{}{}", name, message);
}

}  // namespace

void log_to_console(LogLevel least) {
  auto console = std::make_shared<spdlog::logger>(
      "console", std::make_shared<spdlog::sinks::stderr_sink_mt>());
  console->set_pattern("%v");
  console->set_level(to_spdlog(least));
  console->set_error_handler([](const std::string&) {});  // there is nowhere left to report it
  const std::lock_guard lock(loggers().mutex);
  loggers().console = std::move(console);
}

void log_to_file(const std::string& path) {
  make_own_file(path);
  if (const std::string reason = why_no_file(path); !reason.empty()) {
    throw StateError("cannot write the log '" + path + "': it " + reason);
  }
  std::shared_ptr<spdlog::logger> file;
  try {
    file = std::make_shared<spdlog::logger>(
        "file", std::make_shared<spdlog::sinks::basic_file_sink_mt>(path));
  } catch (const spdlog::spdlog_ex& error) {
    throw StateError("cannot write the log '" + path + "': " + error.what());
  }
  file->set_level(spdlog::level::debug);
  file->set_pattern("%Y-%m-%d %H:%M:%S.%e %l: %v");
  file->flush_on(spdlog::level::trace);
  file->set_error_handler([path, is_told = false](const std::string& reason) mutable {
    if (is_told) return;
    is_told = true;
    std::shared_ptr<spdlog::logger> console;
    {
      const std::lock_guard lock(loggers().mutex);
      console = loggers().console;
    }
    if (console) console->error("error: cannot write the log '{}': {}", path, reason);
  });
  const std::lock_guard lock(loggers().mutex);
  loggers().file = std::move(file);
}

void stop_logging_to_file() {
  const std::lock_guard lock(loggers().mutex);
  loggers().file.reset();
}

void stop_logging() {
  const std::lock_guard lock(loggers().mutex);
  loggers().console.reset();
  loggers().file.reset();
}

void log_detail(std::string_view text) { log(LogLevel::Detail, text); }
void log_info(std::string_view text) { log(LogLevel::Info, text); }
void log_info_to_file(std::string_view text) { log(LogLevel::Info, text, Sink::FileOnly); }
void log_warning(std::string_view text) { log(LogLevel::Warning, text); }
void log_error(std::string_view text) { log(LogLevel::Error, text); }

}  // namespace lacuna
