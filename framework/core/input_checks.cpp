#include "lacuna/framework/core/input_checks.h"

#include <fmt/core.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <limits>

namespace lacuna {
namespace {

constexpr int64_t kUnknown = std::numeric_limits<int64_t>::max();

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

// The number that follows a word in a file of the system's; without a word, the file's first.
int64_t number_in(const char* path, const std::string& word) {
  std::ifstream file(path);
  std::string found;
  int64_t number = 0;
  while (!word.empty() && file >> found && found != word) {
  }
  return file >> number ? number : kUnknown;
}

int64_t left_of(int64_t limit, int64_t used) {
  return limit == kUnknown || used == kUnknown ? kUnknown : std::max<int64_t>(limit - used, 0);
}

int64_t address_space() {
  rlimit limit{};
  if (getrlimit(RLIMIT_AS, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY) return kUnknown;
  return static_cast<int64_t>(std::min<rlim_t>(limit.rlim_cur, kUnknown));
}

int64_t left_of_address_space() {
  const int64_t limit = address_space();
  if (limit == kUnknown) return kUnknown;
  const int64_t pages = number_in("/proc/self/statm", "");
  return left_of(limit, pages == kUnknown ? 0 : pages * sysconf(_SC_PAGESIZE));
}

int64_t sum_of(int64_t a, int64_t b) { return a > kUnknown - b ? kUnknown : a + b; }

// Of the machine, in bytes, by a line of /proc/meminfo.
int64_t machine_bytes(const std::string& line) {
  const int64_t kilobytes = number_in("/proc/meminfo", line);
  return kilobytes > kUnknown / 1024 ? kUnknown : kilobytes * 1024;
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

int64_t available_memory() {
  const int64_t of_machine = machine_bytes("MemAvailable:");
  const int64_t of_group = left_of(number_in("/sys/fs/cgroup/memory.max", ""),
                                   number_in("/sys/fs/cgroup/memory.current", ""));
  return std::min({of_machine, of_group, left_of_address_space()});
}

int64_t total_memory() {
  const int64_t swap = machine_bytes("SwapTotal:");
  const int64_t of_machine = sum_of(machine_bytes("MemTotal:"), swap);
  // A group that says nothing of swap may take all there is.
  const int64_t swap_of_group = std::min(swap, number_in("/sys/fs/cgroup/memory.swap.max", ""));
  const int64_t of_group = sum_of(number_in("/sys/fs/cgroup/memory.max", ""), swap_of_group);
  return std::min({of_machine, of_group, address_space()});
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
