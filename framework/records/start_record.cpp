#include "lacuna/framework/records/start_record.hpp"

#include <fmt/chrono.h>
#include <fmt/core.h>

#include <ctime>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string_view>
#include <system_error>

#include "lacuna/framework/config/config.h"
#include "lacuna/framework/core/version.h"
#include "lacuna/framework/io/shell_word.hpp"
#include "lacuna/framework/io/storage/file_system.hpp"
#include "lacuna/framework/records/json_text.hpp"

namespace lacuna {
namespace {

constexpr size_t kMostBytes = 4096;  // of a command that is kept

std::string path_in(const std::string& folder) { return folder + "/started.jsonl"; }

// An ordinary file's; of anything else nothing, as of one that is not there: a pipe would wait.
std::ifstream open_file(const std::string& path) {
  std::error_code unknown;
  if (!std::filesystem::is_regular_file(path, unknown)) return {};
  return std::ifstream(path, std::ios::binary);
}

std::string processor_name() {
  std::ifstream stream("/proc/cpuinfo");
  for (std::string line; std::getline(stream, line);) {
    if (!line.starts_with("model name")) continue;
    const size_t colon = line.find(": ");
    return colon == std::string::npos ? "" : line.substr(colon + 2);
  }
  return "";
}

std::string command_of_process() {
  std::ifstream stream("/proc/self/cmdline", std::ios::binary);
  std::string command;
  for (std::string word; std::getline(stream, word, '\0');) {
    const bool is_program = command.empty();
    command += is_program ? shell_word(word.substr(word.rfind('/') + 1)) : " " + shell_word(word);
  }
  if (command.size() > kMostBytes) command.resize(kMostBytes);
  return clean_utf8(command);
}

std::string event_text(const Config& map, const char* key) {
  const Config value = map.get(key);
  return value.is_scalar() ? value.text() : "";
}

// Of "2026-11-26 00:46:00.123 info: …", in local time.
std::string time_of_log(const std::string& folder) {
  std::ifstream stream = open_file(folder + "/log.txt");
  std::string line;
  std::getline(stream, line);
  if (line.size() < 19 || line[4] != '-' || line[10] != ' ' || line[13] != ':') return "";
  return line.substr(0, 10) + "T" + line.substr(11, 8);
}

}  // namespace

RunStart start_of_process(int64_t threads) {
  const std::time_t now = std::time(nullptr);
  return {.time = fmt::format("{:%Y-%m-%dT%H:%M:%SZ}", fmt::gmtime(now)),
          .machine = processor_name(),
          .command = command_of_process(),
          .version = kVersion,
          .threads = threads};
}

// The file is replaced: a copy of the run that shares it keeps its own.
void append_start(const std::string& folder, const RunStart& start) {
  std::ifstream stream = open_file(path_in(folder));
  std::string text{std::istreambuf_iterator<char>(stream), {}};
  if (!text.empty() && text.back() != '\n') text += '\n';
  text += Config::map({{"time", start.time},
                       {"machine", start.machine},
                       {"command", start.command},
                       {"version", start.version},
                       {"threads", start.threads}})
              .to_json();
  write_file_atomically(path_in(folder), text + "\n");
}

std::vector<RunStart> read_starts(const std::string& folder) {
  std::vector<RunStart> starts;
  std::ifstream stream = open_file(path_in(folder));
  for (std::string line; std::getline(stream, line);) {
    const auto event = parse_json(line);
    if (!event || !event->is_map()) continue;
    const Config threads = event->get("threads");
    starts.push_back({.time = event_text(*event, "time"),
                      .machine = event_text(*event, "machine"),
                      .command = event_text(*event, "command"),
                      .version = event_text(*event, "version"),
                      .threads = threads.is_number() ? threads.as<int64_t>() : 0});
  }
  if (!starts.empty()) return starts;
  const std::string time = time_of_log(folder);
  if (!time.empty()) starts.push_back({.time = time, .machine = {}, .command = {}, .version = {}});
  return starts;
}

std::string with_short_paths(const std::string& command) {
  std::string result;
  for (size_t i = 0; i < command.size();) {
    const bool begins =
        command[i] == '/' &&
        (i == 0 || std::string_view(" ='\"[,").find(command[i - 1]) != std::string_view::npos);
    if (!begins) {
      result += command[i++];
      continue;
    }
    const size_t end = std::min(command.find_first_of(" '\",]}", i), command.size());
    const std::string path = command.substr(i, end - i);
    const size_t last = path.rfind('/', path.size() - (path.ends_with('/') ? 2 : 1));
    const size_t before = last == 0 || last == std::string::npos ? 0 : path.rfind('/', last - 1);
    result += before == 0 ? path : "…" + path.substr(before);
    i = end;
  }
  return result;
}

}  // namespace lacuna
