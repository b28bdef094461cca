// RunData: the content of a run folder, read to be shown: curves, layers, masks, result.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "lacuna/framework/config/config.h"
#include "lacuna/framework/records/change_record.hpp"
#include "lacuna/framework/records/mask_record.hpp"
#include "lacuna/framework/records/start_record.hpp"

namespace lacuna {

/// Values over steps.
struct Curve {
  std::vector<double> steps, values;

  void add(double step, double value);
  bool empty() const { return steps.empty(); }
};

/// How one sparse parameter went.
struct LayerData {
  std::string name;
  Shape shape;  ///< of rank 0 if nothing states it
  /// Fractions of nonzeros: aimed at, and got.
  Curve target, actual;
  Curve dropped, grown, churn, ever_active, dead_rows, dead_columns, nnz;
  std::vector<int64_t> picture_steps;
  std::vector<MaskPicture> pictures;
  std::vector<int64_t> fan_in;  ///< of each row, of the newest mask; empty if there is none
  int64_t fan_in_step = 0;
};

/// Loss and the like of one split: by name, as metrics.jsonl has them.
using SplitCurves = std::map<std::string, Curve>;

struct RunData {
  std::string folder;  ///< as it was given
  std::string name;    ///< what it is called: the end of the folder's path
  std::string label =
      {};  ///< the same without what other runs' names have too: for tables and curves
  /// "finished", "stopped early", "running" (a process holds the folder), or "unfinished".
  std::string state = {};
  bool is_int8 = false;  ///< the result of `lacuna quantize`
  Config config = {};    ///< null where it cannot be read
  Config summary = {};   ///< null if there is none
  /// The configuration with what it leaves out, as far as that is known; null: as `config`.
  Config full_config = {};
  /// Dotted keys of it that have the value that they have when they are left out.
  std::set<std::string> defaults = {};
  std::vector<RunStart> starts = {};       ///< the first one first
  std::vector<ConfigChange> changes = {};  ///< changes.jsonl: `config` has the last values
  Config confusion = {};                   ///< confusion.json; null if there is none
  std::map<std::string, SplitCurves> splits = {};
  Curve step_seconds = {};        ///< between two events of training
  Curve seconds = {};             ///< of training so far, at events of training
  double epochs_of_a_step = 0.0;  ///< 0 where no event tells it
  std::vector<LayerData> layers = {};
  int64_t damaged_lines = 0;              ///< of metrics.jsonl
  std::vector<std::string> remarks = {};  ///< what could not be read
};

/// Reads a run's folder, finished or not; `most_pixels` is the longest side of a mask's picture, 0
/// for none. What is damaged is left out and remarked on. *Errors:* DataError when the folder is
/// missing or holds no config.yaml of a run. *Cost:* reads metrics.jsonl, and with pictures masks/,
/// or where that is missing the checkpoints.
RunData read_run(const std::string& folder, int64_t most_pixels);

/// The longest side of a mask's picture on a page of so many runs: `most_pixels` of up to four, of
/// more less, so that all pictures together stay as large.
int64_t picture_side(size_t runs, int64_t most_pixels);

/// Reads several, with their names (`names_of_folders`) and labels (`short_labels`). Pictures are
/// of the size that `picture_side` gives; where it makes them smaller, a layer keeps its first and
/// its last. *Errors:* as read_run, before anything is read.
std::vector<RunData> read_runs(const std::vector<std::string>& folders, int64_t most_pixels);

}  // namespace lacuna
