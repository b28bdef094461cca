#include "lacuna/framework/io/storage/leftovers.hpp"

#include <fmt/core.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <csignal>
#include <cstdio>
#include <filesystem>
#include <string_view>
#include <system_error>
#include <vector>

#include "lacuna/framework/io/storage/folder_lock.hpp"

namespace lacuna {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kOld = "-old";

std::string prefix_of(const std::string& path) {
  return fmt::format(".{}.tmp-", fs::path(path).filename().string());
}

// Whether the text is the id of a process that is no more.
bool is_dead(std::string_view id) {
  pid_t process = 0;
  const auto [end, error] = std::from_chars(id.data(), id.data() + id.size(), process);
  if (error != std::errc() || end != id.data() + id.size() || process <= 0) return false;
  return ::kill(process, 0) != 0 && errno == ESRCH;
}

// A folder may be that of a process on another machine, which holds a lock on it.
void remove_unlocked(const fs::path& leftover) {
  std::error_code ignored;
  if (fs::is_directory(fs::symlink_status(leftover, ignored)) && is_locked(leftover.string())) {
    return;
  }
  fs::remove_all(leftover, ignored);
}

}  // namespace

fs::path folder_of(const std::string& path) {
  const fs::path folder = fs::path(path).parent_path();
  return folder.empty() ? "." : folder;
}

std::string temporary_beside(const std::string& path) {
  return (folder_of(path) / fmt::format("{}{}", prefix_of(path), ::getpid())).string();
}

void remove_leftovers(const std::string& path) {
  const std::string prefix = prefix_of(path);
  std::vector<fs::path> dead;
  std::error_code error;
  for (fs::directory_iterator entry(folder_of(path), error), end; !error && entry != end;
       entry.increment(error)) {
    const std::string name = entry->path().filename().string();
    if (!name.starts_with(prefix)) continue;
    std::string_view id = std::string_view(name).substr(prefix.size());
    const bool is_old = id.ends_with(kOld);
    if (is_old) id.remove_suffix(kOld.size());
    if (!is_dead(id)) continue;
    std::error_code missing;
    if (is_old && !fs::exists(fs::symlink_status(path, missing)) &&
        std::rename(entry->path().c_str(), path.c_str()) == 0) {
      continue;
    }
    dead.push_back(entry->path());
  }
  for (const fs::path& leftover : dead) remove_unlocked(leftover);
}

}  // namespace lacuna
