// SharedCheckpoint: a file that the first process has, and all read.
#pragma once

#include <optional>
#include <string>

#include "lacuna/framework/distributed/communicator.h"
#include "lacuna/framework/io/checkpoint.h"

namespace lacuna {

/// A checkpoint in all processes of a job: the first one sends the bytes of its file, and the
/// others keep them in a file of their own (in the folder for temporary files) for as long as this
/// lives. So only the first process must see the run's folder.
class SharedCheckpoint {
 public:
  /// `file` counts in the first process alone. `job` null: this is the only one. Collective.
  /// *Errors:* StateError when the file cannot be read or kept; CheckpointError.
  SharedCheckpoint(Communicator* job, std::optional<CheckpointFile> file);
  ~SharedCheckpoint();
  SharedCheckpoint(const SharedCheckpoint&) = delete;
  SharedCheckpoint& operator=(const SharedCheckpoint&) = delete;

  /// Nothing where the first process had none.
  const std::optional<CheckpointFile>& file() const { return file_; }

 private:
  std::optional<CheckpointFile> file_;
  std::string kept_;  // a file to be removed
};

}  // namespace lacuna
