// MaskRecorder: keeps the masks of a run at its start, at each quarter and at its end.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "lacuna/framework/records/mask_record.hpp"
#include "lacuna/framework/train/parts/experiment.hpp"

namespace lacuna {

/// Writes masks/step-N.h5 into a run's folder (docs/reference/run-folder.md); nothing of a dense
/// run. The bits of five files come to 64 MB at most: from the smallest parameter on while they
/// fit, the rest as densities of tiles.
class MaskRecorder {
 public:
  /// The experiment must outlive it.
  MaskRecorder(const Experiment& experiment, std::string run_folder);

  /// Removes what was written after `step`: it is going to be written again.
  void go_on_from(int64_t step) const;
  /// Whether a step is the start, a quarter of the run, or its end.
  bool is_due(int64_t step) const;
  /// Returns the file's path; nothing where there are no masks. *Errors:* StateError.
  std::optional<std::string> write(int64_t step) const;

 private:
  std::string file(int64_t step) const;

  const Experiment& experiment_;
  std::string folder_;
};

/// Which of these parameters are kept position by position.
std::vector<MaskDetail> choose_mask_details(const std::vector<int64_t>& numels);

/// The masks of the parameters that an experiment's algorithm is in charge of.
std::vector<MaskRecord> record_masks(const Experiment& experiment);

}  // namespace lacuna
