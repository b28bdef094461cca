// SharedCheckpoint: a file that the first process has, and all read.
#pragma once

#include <optional>

#include "lacuna/framework/distributed/communicator.h"
#include "lacuna/framework/io/checkpoint.h"

namespace lacuna {

/// A checkpoint in all processes of a job: the first one sends the bytes of its file, and the
/// others keep them in a file of their own for as long as this lives. That file is in the folder
/// for temporary files, without a name there, so that nothing is left when the process is killed.
/// So only the first process must see the run's folder.
class SharedCheckpoint {
 public:
  /// `file` counts in the first process alone. `job` null: this is the only one. Collective.
  /// *Errors:* StateError when the file cannot be read or kept; CheckpointError.
  SharedCheckpoint(Communicator* job, std::optional<CheckpointFile> file);

  /// Nothing where the first process had none.
  const std::optional<CheckpointFile>& file() const { return file_; }

 private:
  struct Kept {
    Kept() = default;
    ~Kept();
    Kept(const Kept&) = delete;
    Kept& operator=(const Kept&) = delete;
    int descriptor = -1;
  };

  Kept kept_;
  std::optional<CheckpointFile> file_;
};

}  // namespace lacuna
