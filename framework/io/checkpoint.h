// Checkpoints: the state of a run as one HDF5 file, checked as a whole.
// docs/reference/checkpoint.md documents the format.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "lacuna/framework/config/state_dict.h"
#include "lacuna/framework/core/arithmetic_revision.h"
#include "lacuna/framework/core/version.h"

namespace lacuna {

/// The format that this version writes, and the newest that it reads.
inline constexpr int64_t kCheckpointFormat = 2;

/// Everything that a run needs to continue.
struct Checkpoint {
  /// Arrays and numbers; each slash in a name is a group in the file ("model/fc1.weight").
  StateDict state;
  /// The run's resolved configuration.
  std::string config_yaml;
  /// Optimizer steps taken.
  int64_t step = 0;
  /// Seconds spent in training steps so far, and the size of the metrics file: facts about the
  /// past, which differ between two runs that are otherwise the same. Attributes, not part of the
  /// state.
  double train_seconds = 0.0;
  int64_t metrics_bytes = 0;
  /// The version of lacuna that wrote the file; set by reading.
  std::string lacuna_version = kVersion;
  /// Of the arithmetic that computed the state (core/arithmetic_revision.h); none in files of
  /// versions that had no such number.
  std::optional<int64_t> arithmetic_revision = kArithmeticRevision;
  /// The format of the file; set by reading. Writing ignores it: new files have kCheckpointFormat.
  int64_t format_version = kCheckpointFormat;
};

/// Writes the file whole or not at all: to a temporary file in the same folder, which is
/// checksummed, flushed to the disk and renamed. If anything fails, the temporary file is removed,
/// and an existing file at `path` does not change. The same checkpoint gives the same bytes.
/// *Errors:* StateError with path and reason (a full disk, a missing folder); also when a name in
/// the state cannot be a path in the file, a tensor is undefined, or a text holds a zero byte.
/// *Cost:* the file is written, and read once for its checksum; no array is copied, except tensors
/// in batch slabs, one at a time.
void write_checkpoint(const std::string& path, const Checkpoint& checkpoint);

/// A file that is verified to be a good checkpoint: the checksum over every byte is compared before
/// the HDF5 library, which can crash on damaged files, opens it. Since anybody can write a
/// checksum, a file that this process has not written is read in a child process first
/// (`probe_hdf5`).
class CheckpointFile {
 public:
  /// *Errors:* CheckpointError if the file is missing, unreadable, not a checkpoint, truncated,
  /// damaged in any byte, or of a newer format. *Cost:* one pass over the file, in blocks.
  explicit CheckpointFile(std::string path);

  const std::string& path() const { return path_; }
  /// The content. Types and values are returned exactly as they were written. *Errors:*
  /// CheckpointError. *Cost:* reads the file, the first time once more in a child process.
  Checkpoint read() const;
  /// Only the configuration. *Errors:* CheckpointError.
  std::string read_config() const;

 private:
  std::string path_;
};

/// Verifies and reads a file. *Errors:* as CheckpointFile.
Checkpoint read_checkpoint(const std::string& path);

/// Calls a function that uses a file's state. *Errors:* those of the function; CheckpointErrors
/// begin with the file's name.
void naming_file(const std::string& path, const std::function<void()>& use);

}  // namespace lacuna
