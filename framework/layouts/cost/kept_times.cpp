#include "lacuna/framework/layouts/cost/kept_times.hpp"

#include <cstdlib>
#include <fstream>
#include <iomanip>
#include <limits>
#include <sstream>

#include "lacuna/framework/core/input_checks.hpp"
#include "lacuna/framework/core/version.h"
#include "lacuna/framework/layouts/cost/cost_cache.hpp"

namespace lacuna {
namespace {

namespace fs = std::filesystem;

// Checks the file's first line.
bool is_of_these_kernels(std::ifstream& file) {
  std::string line;
  return static_cast<bool>(std::getline(file, line)) && line == cost_file_header();
}

}  // namespace

fs::path measurement_file(const std::string& name) {
  const auto variable = [](const char* of) {
    const char* value = std::getenv(of);
    return std::string(value == nullptr ? "" : value);
  };
  fs::path folder = variable("LACUNA_CACHE_DIR");
  if (folder.empty() && !variable("XDG_CACHE_HOME").empty()) {
    folder = fs::path(variable("XDG_CACHE_HOME")) / "lacuna";
  }
  if (folder.empty() && !variable("HOME").empty()) {
    folder = fs::path(variable("HOME")) / ".cache" / "lacuna";
  }
  if (folder.empty()) return folder;
  const fs::path file = folder / (name + "-" + kVersion + ".txt");
  return why_no_file(file.string()).empty() ? file : fs::path();  // opening a pipe would block
}

std::optional<double> kept_time(const std::string& name, const std::string& key) {
  const fs::path path = measurement_file(name);
  if (path.empty()) return std::nullopt;
  std::ifstream file(path);
  if (!is_of_these_kernels(file)) return std::nullopt;
  for (std::string line; std::getline(file, line);) {
    std::istringstream fields(line);
    std::string found;
    double seconds = 0.0;
    if (fields >> found >> seconds && found == key && seconds > 0.0) return seconds;
  }
  return std::nullopt;
}

// A line is one write, so that concurrent processes do not mix their lines.
void keep_time(const std::string& name, const std::string& key, double seconds) {
  const fs::path path = measurement_file(name);
  if (path.empty()) return;
  std::error_code ignored;
  fs::create_directories(path.parent_path(), ignored);
  std::ifstream file(path);
  const bool goes_on = is_of_these_kernels(file);
  file.close();
  std::ostringstream line;
  if (!goes_on) line << cost_file_header() << "\n";
  line << key << " " << std::setprecision(std::numeric_limits<double>::max_digits10) << seconds
       << "\n";
  std::ofstream(path, goes_on ? std::ios::app : std::ios::trunc) << line.str() << std::flush;
}

}  // namespace lacuna
