// TensorBoard: a run's metrics and masks as event files, in RUN/tensorboard/.
#pragma once

#include <cstdint>
#include <memory>
#include <set>
#include <string>

#include "lacuna/framework/config/config.h"
#include "lacuna/framework/records/event_file.hpp"

namespace lacuna {

/// What TensorBoard shows of a run: a function of metrics.jsonl and masks/, from which the event
/// file is rewritten whenever a run begins or goes on. So nothing is in it twice and nothing is
/// missing, whatever became of the file before. docs/reference/run-folder.md has the tags.
class TensorBoard {
 public:
  /// Replaces what tensorboard/ holds by the events of metrics.jsonl and the masks that are there
  /// now. *Errors:* StateError. *Cost:* reads both.
  explicit TensorBoard(const std::string& run_folder);

  /// Adds the content of a line of metrics.jsonl.
  void write(const Config& event);
  /// Adds pictures of the masks in a file of masks/, once. A damaged one is logged and left out.
  void write_masks(const std::string& path);

 private:
  std::unique_ptr<EventFile> file_;
  std::set<std::string> pictured_;  // files
  double seconds_ = 0.0;            // of training, as of the last event that has it
  double began_ = 0.0;              // when training would have begun, had it not been interrupted
};

}  // namespace lacuna
