#include "lacuna/framework/report/run_search.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <set>
#include <system_error>

#include "lacuna/framework/core/error.h"
#include "lacuna/framework/records/json_text.hpp"

namespace lacuna {

namespace fs = std::filesystem;

namespace {

constexpr int kMostLevels = 4;
constexpr size_t kMostNamed = 8;  // lines of one folder

bool is_file(const std::string& path) {
  std::error_code error;
  return fs::is_regular_file(path, error);
}

bool is_folder(const std::string& path) {
  std::error_code error;
  return fs::is_directory(path, error);
}

std::vector<std::string> folders_in(const std::string& folder) {
  std::vector<std::string> folders;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(folder, error)) {
    const std::string name = entry.path().filename().string();
    if (!name.starts_with('.') && entry.is_directory(error)) {
      folders.push_back(entry.path().string());
    }
  }
  std::ranges::sort(folders);
  return folders;
}

// A configuration alone may be anybody's: that of a run has its records next to it.
bool has_records(const std::string& folder) {
  constexpr std::array kFiles{"metrics.jsonl", "summary.json",  "prune.json",
                              "shrink.json",   "quantize.json", "log.txt"};
  return is_folder(folder + "/checkpoints") || std::ranges::any_of(kFiles, [&](const char* name) {
           return is_file(folder + ("/" + std::string(name)));
         });
}

class RunSearch {
 public:
  // Returns whether there is a run in the folder or below it. `without` gets its folders that hold
  // none.
  bool look_in(const std::string& folder, int levels, std::vector<std::string>& without) {
    const bool has_config = is_file(folder + "/config.yaml");
    if (has_config && has_records(folder)) {
      add(folder);
      return true;
    }
    bool is_found = false;
    std::vector<std::string> empty;
    for (const std::string& inside : levels > 0 ? folders_in(folder) : std::vector<std::string>{}) {
      std::vector<std::string> unused;
      if (look_in(inside, levels - 1, unused)) {
        is_found = true;
        without.insert(without.end(), unused.begin(), unused.end());
      } else {
        empty.push_back(inside);
      }
    }
    if (is_found) without.insert(without.end(), empty.begin(), empty.end());
    if (is_found || !has_config) return is_found;
    add(folder);  // one that has not begun
    return true;
  }

  std::vector<std::string> folders;

 private:
  void add(const std::string& folder) {
    std::error_code error;
    if (seen_.insert(fs::weakly_canonical(folder, error).string()).second) {
      folders.push_back(folder);
    }
  }

  std::set<std::string> seen_;
};

std::string trimmed_path(std::string path) {
  while (path.size() > 1 && path.ends_with('/')) path.pop_back();
  return path;
}

// Of a folder without runs.
std::string why_none(const std::string& path) {
  if (!is_folder(path)) return "'" + path + "' is a file, not a run folder";
  if (is_file(path + "/sweep.yaml")) return "the sweep in '" + path + "' has no run yet";
  return "'" + path + "' has no config.yaml of a run, nor does any folder in it";
}

}  // namespace

FoundRuns find_runs(const std::vector<std::string>& given) {
  std::error_code error;
  for (const std::string& path : given) {
    if (!fs::exists(path, error)) throw DataError("there is no run folder '" + path + "'");
  }
  RunSearch search;
  FoundRuns found;
  std::string first_reason;
  for (const std::string& path : given) {
    const std::string folder = trimmed_path(path);
    std::vector<std::string> without;
    if (is_folder(folder) && search.look_in(folder, kMostLevels, without)) {
      for (size_t i = 0; i < std::min(without.size(), kMostNamed); ++i) {
        found.passed_over.push_back("'" + without[i] + "' holds no run, and is skipped");
      }
      if (without.size() > kMostNamed) {
        found.passed_over.push_back(fmt::format("{} more folders in '{}' hold no run",
                                                without.size() - kMostNamed, folder));
      }
      continue;
    }
    const std::string reason = why_none(folder);
    if (first_reason.empty()) first_reason = reason;
    found.passed_over.push_back(reason + "; it is skipped");
  }
  if (search.folders.empty()) throw DataError(first_reason);
  found.folders = std::move(search.folders);
  return found;
}

void require_run(const std::string& folder) {
  if (!is_folder(folder)) throw DataError("there is no run folder '" + folder + "'");
  if (!is_file(folder + "/config.yaml")) {
    throw DataError("'" + folder + "' has no config.yaml of a run");
  }
}

bool has_ended(const std::string& folder) {
  if (!is_file(folder + "/summary.json") || !is_file(folder + "/config.yaml")) return false;
  std::ifstream stream(folder + "/summary.json", std::ios::binary);
  const std::string text{std::istreambuf_iterator<char>(stream), {}};
  const auto summary = parse_json(text);
  return summary && summary->is_map();
}

}  // namespace lacuna
