// Files that are replaced or appended to safely. Every error is a StateError with path and reason.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "lacuna/framework/config/config.h"

namespace lacuna {

/// Replaces a file in one step: write `temporary_path()`, then `commit()`. At every moment, a crash
/// of the machine included, `path` is the old file or the new one, whole. Without `commit()` the
/// destructor removes the temporary file.
class FileReplacement {
 public:
  /// The temporary file is next to `path`, as ".<name>.tmp-<process id>"; it is not made yet, but
  /// one of that name is removed, and those of killed processes.
  explicit FileReplacement(std::string path);
  FileReplacement(const FileReplacement&) = delete;
  FileReplacement& operator=(const FileReplacement&) = delete;
  ~FileReplacement();

  const std::string& temporary_path() const { return temporary_; }
  /// Flushes the temporary file to the disk.
  void flush() const;
  /// Renames the temporary file (flushed before) to `path` and flushes the folder.
  void commit();

 private:
  std::string path_;
  std::string temporary_;
  bool is_done_ = false;
};

/// Makes a folder in one step: fill `temporary_path()`, which is there and empty, then `commit()`
/// or `commit_new()`. Without it the destructor removes what was written.
class FolderReplacement {
 public:
  /// The temporary folder is next to `path`, as ".<name>.tmp-<process id>"; folders on the way are
  /// made. If `path` is a link to a folder, that folder is meant. Temporary folders of killed
  /// processes are removed, unless somebody holds a lock on them.
  explicit FolderReplacement(const std::string& path);
  FolderReplacement(const FolderReplacement&) = delete;
  FolderReplacement& operator=(const FolderReplacement&) = delete;
  ~FolderReplacement();

  const std::string& temporary_path() const { return temporary_; }
  /// Renames it to `path`, at which there may be a folder: the two change places in one step, and
  /// the old one is removed. On a file system that cannot exchange, a process killed in between
  /// leaves the old folder next to `path`, and the next replacement puts it back.
  void commit();
  /// Renames it to `path`, at which there may be an empty folder, as of a killed process. *Errors:*
  /// StateError if anything else is there, such as a run that began in the meantime; it stays.
  void commit_new();
  /// A message about what is written, with `path` instead of the temporary folder.
  std::string in_place(std::string message) const;

 private:
  void finish();

  std::string path_;
  std::string temporary_;
  bool is_done_ = false;
};

/// Writes a whole file with FileReplacement.
void write_file_atomically(const std::string& path, std::string_view text);

/// Removes the temporary files that killed processes left in `folder`. For a folder that no other
/// process writes to. A missing folder holds none. Returns how many there were.
int remove_temporary_files(const std::string& folder);

/// *Errors:* StateError where something is at `path` that is no file itself: a link (whose target
/// is somebody else's), a pipe, a device.
void require_plain_file(const std::string& path);
/// The same for a file that is written to in place. One with other names (hard links, as of a copy
/// made by `cp -l`) is replaced by a copy of its own, so that those keep what they have.
void make_own_file(const std::string& path);

/// Cuts a file back to `bytes`. *Errors:* StateError also when it is shorter than that, and as
/// require_plain_file.
void truncate_file(const std::string& path, int64_t bytes);

/// A file to which JSON objects are appended, one a line (metrics.jsonl). Each line is handed to
/// the system at once, so that it outlives this process, and a crash of the machine once flushed.
class JsonLines {
 public:
  /// Opens or creates the file. *Errors:* as require_plain_file.
  explicit JsonLines(std::string path);
  JsonLines(const JsonLines&) = delete;
  JsonLines& operator=(const JsonLines&) = delete;
  ~JsonLines();

  /// Appends `value` in JSON and a line end. When that fails (a full disk), the part of the line
  /// that was written is taken back.
  void write(const Config& value);
  /// Flushes the written bytes to the disk, so that they also survive a crash of the machine.
  void flush() const;
  /// Size of the file in bytes: where the next line begins.
  int64_t size() const { return size_; }

 private:
  std::string path_;
  int descriptor_ = -1;
  int64_t size_ = 0;
};

}  // namespace lacuna
