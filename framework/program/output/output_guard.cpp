#include "lacuna/framework/program/output/output_guard.hpp"

#include <sys/stat.h>

#include <filesystem>
#include <fstream>
#include <set>
#include <system_error>
#include <utility>

#include "lacuna/framework/core/error.h"
#include "lacuna/framework/core/input_checks.hpp"

namespace lacuna {
namespace {

namespace fs = std::filesystem;

using Identity = std::pair<dev_t, ino_t>;

// What is at a path, through links.
class Facts {
 public:
  explicit Facts(const std::string& path) : is_there_(::stat(path.c_str(), &facts_) == 0) {}
  bool is_file() const { return is_there_ && S_ISREG(facts_.st_mode); }
  bool is_folder() const { return is_there_ && S_ISDIR(facts_.st_mode); }
  Identity identity() const { return {facts_.st_dev, facts_.st_ino}; }

 private:
  struct stat facts_ {};
  bool is_there_;
};

// The path of that file in a folder, or nothing. Links to folders are followed, each folder once.
std::string find_in(const std::string& folder, const Identity& file, std::set<Identity>& seen) {
  if (!seen.insert(Facts(folder).identity()).second) return {};
  std::error_code error;
  for (fs::directory_iterator entry(folder, error), end; !error && entry != end;
       entry.increment(error)) {
    const std::string path = entry->path().string();
    const Facts facts(path);
    if (facts.is_file() && facts.identity() == file) return path;
    if (!facts.is_folder()) continue;
    if (std::string found = find_in(path, file, seen); !found.empty()) return found;
  }
  return {};
}

}  // namespace

void require_not_read(const std::string& option, const std::string& path,
                      const std::vector<std::string>& read) {
  const Facts written(path);
  if (!written.is_file()) return;
  std::set<Identity> seen;
  for (const std::string& input : read) {
    const Facts facts(input);
    std::string found;
    if (facts.is_file() && facts.identity() == written.identity()) found = input;
    if (facts.is_folder()) found = find_in(input, written.identity(), seen);
    if (found.empty()) continue;
    throw ConfigError(option + " '" + path + "' is the input file '" + found +
                      "', and would be overwritten; give another name");
  }
}

void require_text_or_nothing(const std::string& option, const std::string& path) {
  if (!Facts(path).is_file()) return;
  constexpr std::streamsize kLooked = 4096;
  std::string begin(kLooked, '\0');
  std::ifstream stream(path, std::ios::binary);
  stream.read(begin.data(), kLooked);
  begin.resize(static_cast<size_t>(stream.gcount()));
  constexpr size_t kMostOfACharacter = 4;  // the last one may be cut off
  const bool is_text =
      begin.find('\0') == std::string::npos && utf8_bytes(begin) + kMostOfACharacter > begin.size();
  if (is_text) return;
  throw ConfigError(option + " '" + path +
                    "' exists and is not a text file; give another name or --overwrite");
}

std::vector<std::string> files_named_in(const Config& config) {
  std::vector<std::string> files;
  if (config.is_scalar() && Facts(config.text()).is_file()) files.push_back(config.text());
  for (const auto& [key, value] : config.children()) {
    for (std::string& file : files_named_in(value)) files.push_back(std::move(file));
  }
  return files;
}

}  // namespace lacuna
