// Verification: a run and its masked reference, step by step on the same batches.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "lacuna/framework/train/parts/experiment.hpp"

namespace lacuna {

/// How far a run may be from its reference: of the largest loss and of the largest value. Rounding
/// alone stays well below it.
inline constexpr double kVerifyTolerance = 1e-3;
/// What rounding can make of a gradient, of the largest one of the model.
inline constexpr double kVerifyRounding = 1e-5;
/// Fraction of the nonzeros whose places may differ, and two always (of a pattern: two of its
/// blocks or groups): scores that are equal but for rounding are put in order by chance.
inline constexpr double kVerifyTies = 1e-3;

/// The largest differences between two models, and the values that they are relative to.
struct ModelDifferences {
  double loss = 0.0;
  double largest_loss = 0.0;
  double value = 0.0;  ///< over positions that both have
  double largest_value = 0.0;
  std::string parameter;  ///< that of the largest difference
  int64_t positions = 0;  ///< positions in one mask only, at the step where there were most
  int64_t positions_allowed = 2;
  int64_t unit = 1;  ///< positions that come and go together, where layouts do not state it (csr)

  /// Relative to the largest; 0 when that is 0.
  double relative_loss() const;
  double relative_value() const;
  bool is_within_tolerance() const;
  /// One sentence.
  std::string to_string() const;
};

/// Notes how a model differs from a reference with the same parameters.
void compare_models(const Module& model, const Module& reference, ModelDifferences& differences);

/// Gradients in the logical shapes, by the parameters' names.
using Gradients = std::map<std::string, std::vector<float>>;
Gradients gradients_of(const Module& model);

/// Adam divides a gradient by its own size: of one that is rounding alone, as that of a bias before
/// a batch normalization, it makes a whole step in any direction. Where the gradients of both
/// models are no larger than four times the rounding, the reference takes the model's value and
/// states. The rounding of a parameter's gradients is the largest difference between the models' in
/// any step so far, at most kVerifyRounding. `roundings`: by the parameters' names.
void settle_rounding(const Module& model, const Gradients& gradients, const Module& reference,
                     const Gradients& expected, std::map<std::string, double>& roundings);

/// The reference of a run: an experiment of its own, in layout masked, which takes the same steps.
/// *Memory:* arrays of numel size; the data once more.
class Verification {
 public:
  /// For the first `steps` steps. `config` is the run's resolved configuration; the reference
  /// starts from the same checkpoint, where there is one. *Errors:* ConfigError when the
  /// configuration makes nothing sparse; those of build_experiment.
  Verification(const Config& config, int64_t steps,
               const std::optional<CheckpointFile>& checkpoint);

  /// From now on, the gradients of the run's steps are known, and their rounding errors.
  void watch(Experiment& run);
  /// To be called after each step of the run. After the last of the steps to compare, or the first
  /// whose masks differ, it logs what was found. *Errors:* Error with what was found when that
  /// is more than rounding.
  void compare_step(const Experiment& run, double loss);
  /// Logs and judges what was compared, when the run has ended before that.
  void finish();

  const ModelDifferences& differences() const { return differences_; }

 private:
  std::unique_ptr<Experiment> reference_;  // null once it is done
  Gradients gradients_;                    // of the run's last step, where it is watched
  std::map<std::string, double> roundings_;
  int64_t steps_;
  int64_t done_ = 0;
  ModelDifferences differences_;
};

}  // namespace lacuna
