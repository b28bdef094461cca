// The units of a trained experiment's model, scored and chosen; and the experiment that is left.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "lacuna/framework/config/config.h"
#include "lacuna/framework/shrink/model_units.hpp"
#include "lacuna/framework/shrink/shrink_options.hpp"
#include "lacuna/framework/shrink/unit_rounding.hpp"
#include "lacuna/framework/train/parts/experiment.hpp"

namespace lacuna {

/// What a model costs, before or after.
struct ShrinkCosts {
  double flops = 0.0;       ///< of a forward pass of one example
  double parameters = 0.0;  ///< nonzeros
  double bytes = 0.0;       ///< of all parameters as dense float32
  double seconds = 0.0;     ///< of a training step; 0 where it was not measured
};

class ShrunkModel {
 public:
  /// `from`: the trained model, whose weights may change here. `config`: what the smaller run is
  /// made by, but for its model. *Errors:* ConfigError at `section` for a budget that cannot be
  /// met, for layers that cannot be cut, and for more calibration examples than there are.
  ShrunkModel(Experiment& from, const Config& config, const ShrinkOptions& options,
              const Config& section);

  /// Where nothing is left of the masks, the smaller run has no section `sparsity`, which would
  /// mask further units; a message says so.
  void leave_out_finished_sparsity();
  /// Where a constant sparsity of the whole weights (of the section or of an entry of its list)
  /// would remove more of what is left, each weight gets the sparsity that it has now; a message
  /// says so. It would after units were ablated, as by srigl, whose other rows have more nonzeros
  /// instead.
  void keep_nonzeros();
  /// The smaller experiment, with the weights that stay.
  std::unique_ptr<Experiment> build() const;
  /// Gives it the optimizer's states that were saved with the trained model. *Returns* why it has
  /// none of them; empty where it has.
  std::string take_states(Experiment& smaller, const StateDict& saved) const;

  const ModelUnits& units() const { return units_; }
  const KeptUnits& kept() const { return kept_; }
  const ShrinkCosts& before() const { return before_; }
  const ShrinkCosts& after() const { return after_; }
  /// The multiples at which units were kept, one for each unit.
  std::vector<int64_t> multiples() const { return multiples_of_units(units_, rounding_); }
  const std::vector<std::string>& messages() const { return messages_; }

 private:
  KeptUnits choose(const ShrinkOptions& options, const Config& section);
  KeptUnits choose_within(const std::vector<double>& scores, const ShrinkOptions& options,
                          const Config& section);
  ShrinkCosts costs(const KeptUnits& kept) const;
  double part_left(const KeptUnits& kept, const ShrinkOptions& options) const;
  std::vector<int64_t> pattern_multiples() const;
  void report_rounding(double part, const ShrinkOptions& options);
  std::vector<double> scores(const ShrinkOptions& options);
  CalibrationRun calibration() const;
  void fit(const ShrinkOptions& options);
  std::unique_ptr<Experiment> build(const KeptUnits& kept) const;
  double step_seconds(const KeptUnits& kept) const;

  Experiment& from_;
  Config config_;
  ModelUnits units_;
  KeptUnits kept_;
  Rounding rounding_;
  CalibrationOptions calibration_;  // with all its numbers; of methods that need it
  ShrinkCosts before_, after_;
  std::vector<std::string> messages_;
};

}  // namespace lacuna
