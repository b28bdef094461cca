// FolderLock: one process at a time in a folder.
#pragma once

#include <string>

namespace lacuna {

/// A lock on a folder itself, which the system lets go of when the process ends in whatever way.
/// The processes that it starts do not have it.
class FolderLock {
 public:
  /// Tries to take it.
  explicit FolderLock(const std::string& folder);
  FolderLock(const FolderLock&) = delete;
  FolderLock& operator=(const FolderLock&) = delete;
  ~FolderLock();

  /// False where another process has it; true also where the file system knows no locks.
  bool is_taken() const { return is_taken_; }

 private:
  int descriptor_;
  bool is_taken_ = true;
};

/// Whether a process, this one included, holds a lock on the folder.
bool is_locked(const std::string& folder);

}  // namespace lacuna
