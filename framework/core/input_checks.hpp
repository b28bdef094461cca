// What has to be asked of anything that comes from outside: whether bytes are text, whether a path
// is a file that ends, how much memory there is for what is in it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <limits>
#include <string>
#include <string_view>

namespace lacuna {

/// How many bytes, from the first on, are UTF-8: shortest forms alone, no surrogates, up to
/// U+10FFFF. *Cost:* one pass.
size_t utf8_bytes(std::string_view text);
/// Whether all of them are.
inline bool is_utf8(std::string_view text) { return utf8_bytes(text) == text.size(); }

/// The text as it can stand in a message: control characters and bytes that are not UTF-8 as
/// "\x00", the rest as it is; beyond `most` bytes cut, with "…" behind.
std::string printable(std::string_view text, size_t most = 200);

/// What a path is where reading it could wait without end or never come to one: "is a pipe, not a
/// file" (or a socket, or a device). Empty where it is a file or a folder, or where nothing is
/// there, which opening it reports better. Links are followed.
std::string why_no_file(const std::string& path);

/// Bytes that this process may still take, as far as the system reports: the least of the memory
/// that is available, of what the process's control groups (of version 1 or 2, and those around
/// them) leave next to cached files, and of its limit of address space. The largest int64_t where
/// nothing is known.
int64_t available_memory();
/// Bytes that this process could ever have: the least of the machine's memory with its swap, of
/// what the process's control groups allow, and of its limit of address space. What needs more fits
/// never, whatever else ends. The largest int64_t where nothing is known.
int64_t total_memory();

/// Bytes; the largest int64_t where nothing is known.
struct GroupMemory {
  int64_t total = std::numeric_limits<int64_t>::max();  ///< that there can be, swap among it
  int64_t left = std::numeric_limits<int64_t>::max();   ///< that may still be taken
};
/// What control groups allow a process: the least of those that it is in and those around them.
/// `membership` is a file as /proc/self/cgroup and `root` a folder as /sys/fs/cgroup, of version 1
/// or 2; in a container, where the one may name groups that the other does not show, what `root`
/// itself states counts. `swap` is the machine's. *Cost:* some small files per level of groups.
GroupMemory memory_of_groups(const std::filesystem::path& membership,
                             const std::filesystem::path& root, int64_t swap);

/// "2.1 GB", "13 kB": bytes in decimal units.
std::string bytes_in_words(int64_t bytes);

}  // namespace lacuna
