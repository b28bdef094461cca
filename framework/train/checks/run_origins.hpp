// RunOrigins: what a run was made from, as its checkpoints keep it, so that a run that goes on, or
// is evaluated, notices that something else lies there now.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "lacuna/framework/config/state_dict.h"
#include "lacuna/framework/data/hashes/data_hash.h"
#include "lacuna/framework/data/types/csv.h"

namespace lacuna {

/// The model that a loss of type distillation learns from.
struct TeacherOrigin {
  int64_t step = 0;
  uint64_t hash = 0;  ///< of its state, `hash_state`
};

/// A hash of all names and values.
uint64_t hash_state(const StateDict& state);

/// The splits of a run's data.
enum class Split { Train, Validation, Test };

struct RunOrigins {
  SplitHashes data = {};
  /// Examples that are trained on: what checkpoints without hashes have.
  std::optional<int64_t> train_size = {};
  CsvColumns columns = {};  ///< of a table whose first line names them
  std::optional<TeacherOrigin> teacher = {};

  /// "data" and, where there is one, "teacher", each in JSON. The rest is in the state of others.
  StateDict state_dict() const;
  /// Of the whole state of a checkpoint; what it lacks is absent. *Errors:* CheckpointError.
  static RunOrigins from_state(const StateDict& whole);

  /// The differences from `saved`, in a few words each, without parts that one of both lacks.
  std::vector<std::string> changes_since(const RunOrigins& saved) const;
  /// A line for the log where `saved` has no hash of what there is; empty where it has all.
  std::string unknown_in(const RunOrigins& saved) const;
};

/// How a split has changed, in a few words: "other training inputs"; empty where it does not, and
/// where one of both is absent.
std::string split_change(const SplitHashes& before, const SplitHashes& now, Split split);

}  // namespace lacuna
