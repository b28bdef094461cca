#include "lacuna/framework/records/change_record.hpp"

#include <filesystem>
#include <fstream>
#include <system_error>

#include "lacuna/framework/core/error.h"
#include "lacuna/framework/io/storage/file_system.hpp"
#include "lacuna/framework/io/yaml.h"

namespace lacuna {
namespace {

bool is_there(const std::string& path) {
  std::error_code missing;
  return std::filesystem::exists(path, missing);
}

}  // namespace

std::string value_in_words(const Config& value) {
  return value.is_null() ? "nothing" : value.is_scalar() ? value.text() : value.to_json();
}

std::vector<ConfigChange> read_changes(const std::string& path) {
  if (!is_there(path)) return {};
  require_plain_file(path);
  std::ifstream file(path);
  std::vector<ConfigChange> changes;
  std::string line;
  for (int number = 1; std::getline(file, line); ++number) {
    try {
      const Config entry = parse_yaml(line, path);
      changes.push_back({.step = entry.required<int64_t>("step"),
                         .key = entry.required<std::string>("key"),
                         .before = entry.get("old").clone(),
                         .after = entry.get("new").clone()});
    } catch (const ConfigError& error) {
      throw DataError(path + ":" + std::to_string(number) +
                      ": no change of a configuration: " + error.what());
    }
  }
  return changes;
}

void write_changes(const std::string& path, const std::vector<ConfigChange>& changes) {
  if (changes.empty() && !is_there(path)) return;
  std::string text;
  for (const ConfigChange& change : changes) {
    const Config entry = Config::map({{"step", change.step},
                                      {"key", change.key},
                                      {"old", change.before.clone()},
                                      {"new", change.after.clone()}});
    text += entry.to_json() + "\n";
  }
  write_file_atomically(path, text);
}

}  // namespace lacuna
