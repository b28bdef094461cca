#include "lacuna/framework/core/input_checks.hpp"

#include <fmt/core.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>

namespace lacuna {
namespace {

namespace fs = std::filesystem;

uint8_t byte_at(std::string_view text, size_t at) { return static_cast<uint8_t>(text[at]); }

// Bytes of the code point that begins at `at`; 0 where none does.
size_t length_at(std::string_view text, size_t at) {
  const uint8_t lead = byte_at(text, at);
  if (lead < 0x80) return 1;
  const size_t length = lead >= 0xF0 ? 4 : lead >= 0xE0 ? 3 : 2;
  if (lead < 0xC2 || lead > 0xF4 || at + length > text.size()) return 0;
  // The second byte rules out longer forms, surrogates and what is beyond U+10FFFF.
  const uint8_t least = lead == 0xE0 ? 0xA0 : lead == 0xF0 ? 0x90 : 0x80;
  const uint8_t most = lead == 0xED ? 0x9F : lead == 0xF4 ? 0x8F : 0xBF;
  if (byte_at(text, at + 1) < least || byte_at(text, at + 1) > most) return 0;
  for (size_t i = 2; i < length; ++i) {
    if ((byte_at(text, at + i) & 0xC0) != 0x80) return 0;
  }
  return length;
}

// Used if the system reports nothing.
constexpr int64_t kUnknownBytes = GroupMemory{}.total;

// The number that follows a word in a file of the system's; without a word, the file's first.
int64_t number_in(const fs::path& file, const std::string& word = "") {
  std::ifstream in(file);
  std::string found;
  int64_t number = 0;
  while (!word.empty() && in >> found && found != word) {
  }
  return in >> number ? number : kUnknownBytes;
}

int64_t sum_of(int64_t a, int64_t b) { return a > kUnknownBytes - b ? kUnknownBytes : a + b; }

int64_t left_of(int64_t limit, int64_t used) {
  const bool is_unknown = limit == kUnknownBytes || used == kUnknownBytes;
  return is_unknown ? kUnknownBytes : std::max<int64_t>(limit - used, 0);
}

// Cached pages of files count as used in a group and go when there is need. 0 where it is unknown.
int64_t cached_in(const fs::path& group, const std::string& prefix) {
  int64_t cached = 0;
  for (const char* list : {"inactive_file", "active_file"}) {
    const int64_t bytes = number_in(group / "memory.stat", prefix + list);
    cached = sum_of(cached, bytes == kUnknownBytes ? 0 : bytes);
  }
  return cached;
}

GroupMemory memory_of(int64_t limit, int64_t with_swap, int64_t used, int64_t cached) {
  if (used != kUnknownBytes) used = std::max<int64_t>(used - cached, 0);
  return {.total = with_swap, .left = left_of(limit, used)};
}

// A group without a limit for swap may take all there is.
GroupMemory memory_of_version_2(const fs::path& group, int64_t swap) {
  const int64_t limit = number_in(group / "memory.max");
  const int64_t of_swap = std::min(swap, number_in(group / "memory.swap.max"));
  return memory_of(limit, sum_of(limit, of_swap), number_in(group / "memory.current"),
                   cached_in(group, ""));
}

GroupMemory memory_of_version_1(const fs::path& group, int64_t swap) {
  const int64_t limit = number_in(group / "memory.limit_in_bytes");
  const int64_t with_swap =
      std::min(sum_of(limit, swap), number_in(group / "memory.memsw.limit_in_bytes"));
  return memory_of(limit, with_swap, number_in(group / "memory.usage_in_bytes"),
                   cached_in(group, "total_"));
}

// Whether a list such as "cpu,memory" names the memory.
bool names_memory(const std::string& controllers) {
  return ("," + controllers + ",").find(",memory,") != std::string::npos;
}

int64_t address_space() {
  rlimit limit{};
  if (getrlimit(RLIMIT_AS, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY) return kUnknownBytes;
  return static_cast<int64_t>(std::min<rlim_t>(limit.rlim_cur, kUnknownBytes));
}

int64_t left_of_address_space() {
  const int64_t limit = address_space();
  if (limit == kUnknownBytes) return kUnknownBytes;
  const int64_t pages = number_in("/proc/self/statm");
  return left_of(limit, pages == kUnknownBytes ? 0 : pages * sysconf(_SC_PAGESIZE));
}

// Of the machine, in bytes, by a line of /proc/meminfo.
int64_t machine_bytes(const std::string& line) {
  const int64_t kilobytes = number_in("/proc/meminfo", line);
  return kilobytes > kUnknownBytes / 1024 ? kUnknownBytes : kilobytes * 1024;
}

GroupMemory own_groups() {
  return memory_of_groups("/proc/self/cgroup", "/sys/fs/cgroup", machine_bytes("SwapTotal:"));
}

}  // namespace

size_t utf8_bytes(std::string_view text) {
  size_t at = 0;
  while (at < text.size()) {
    const size_t length = length_at(text, at);
    if (length == 0) break;
    at += length;
  }
  return at;
}

std::string printable(std::string_view text, size_t most) {
  std::string shown;
  for (size_t at = 0; at < text.size();) {
    const size_t length = length_at(text, at);
    if (at + std::max<size_t>(length, 1) > most) return shown + "…";
    if (length == 0 || byte_at(text, at) < 0x20 || byte_at(text, at) == 0x7F) {
      shown += fmt::format("\\x{:02x}", byte_at(text, at));
      ++at;
    } else {
      shown += text.substr(at, length);
      at += length;
    }
  }
  return shown;
}

std::string why_no_file(const std::string& path) {
  struct stat facts {};
  if (::stat(path.c_str(), &facts) != 0) return "";
  if (S_ISFIFO(facts.st_mode)) return "is a pipe, not a file";
  if (S_ISSOCK(facts.st_mode)) return "is a socket, not a file";
  if (S_ISCHR(facts.st_mode) || S_ISBLK(facts.st_mode)) return "is a device, not a file";
  return "";
}

GroupMemory memory_of_groups(const fs::path& membership, const fs::path& root, int64_t swap) {
  GroupMemory least;
  std::ifstream file(membership);
  for (std::string line; std::getline(file, line);) {  // number:controllers:/path
    const size_t first = line.find(':');
    const size_t second = first == std::string::npos ? first : line.find(':', first + 1);
    if (second == std::string::npos) continue;
    const std::string controllers = line.substr(first + 1, second - first - 1);
    const bool is_version_2 = controllers.empty();
    if (!is_version_2 && !names_memory(controllers)) continue;
    const fs::path top = is_version_2 ? root : root / "memory";
    fs::path group = fs::path(line.substr(second + 1)).relative_path();
    for (bool is_top = false; !is_top; group = group.parent_path()) {
      is_top = group.empty();
      const GroupMemory memory = is_version_2 ? memory_of_version_2(top / group, swap)
                                              : memory_of_version_1(top / group, swap);
      least.total = std::min(least.total, memory.total);
      least.left = std::min(least.left, memory.left);
    }
  }
  return least;
}

int64_t available_memory() {
  const int64_t of_machine = machine_bytes("MemAvailable:");
  return std::min({of_machine, own_groups().left, left_of_address_space()});
}

int64_t total_memory() {
  const int64_t of_machine = sum_of(machine_bytes("MemTotal:"), machine_bytes("SwapTotal:"));
  return std::min({of_machine, own_groups().total, address_space()});
}

std::string bytes_in_words(int64_t bytes) {
  if (bytes < 1000) return fmt::format("{} bytes", bytes);
  double value = static_cast<double>(bytes);
  const char* unit = "";
  for (const char* next : {"kB", "MB", "GB", "TB", "PB", "EB"}) {
    value /= 1000.0;
    unit = next;
    if (value < 999.5) break;
  }
  return fmt::format("{:.{}f} {}", value, value < 9.95 ? 1 : 0, unit);
}

}  // namespace lacuna
