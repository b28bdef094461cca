// Writes that fail: the n-th call that changes a file below a folder (open for writing, write,
// pwrite, fsync, ftruncate, close, rename, mkdir) is told to have failed, once or from then on.
#pragma once

#include <string>

namespace lacuna {

enum class FaultLength { Once, FromThenOn };

/// While it lives, calls of this process are counted, and the one that is asked for fails.
class WriteFaults {
 public:
  /// `at` counts from 1; 0: none fails.
  WriteFaults(const std::string& folder, long at, FaultLength length);
  WriteFaults(const WriteFaults&) = delete;
  WriteFaults& operator=(const WriteFaults&) = delete;
  ~WriteFaults();

  /// Calls so far.
  static long calls();
  /// The call that failed first, "fsync .../run/config.yaml"; empty: none did.
  static std::string failed();
};

}  // namespace lacuna
