// MasterWeight: the dense weight that is trained while a parameter has only a part of it.
#pragma once

#include "lacuna/framework/core/tensor.h"
#include "lacuna/framework/param/parameter.h"
#include "lacuna/optimizers/step_scope.h"

namespace lacuna {

/// The dense master of one parameter: an array in its shape, kept in the parameter's slots, whose
/// values at the mask's positions are the parameter's values. The optimizer trains the master, with
/// dense states; `MasterSwap` prepares it for that. Released by its destructor.
class MasterWeight {
 public:
  /// The state of the parameter after the master is released.
  enum class Remains {
    Part,    ///< the sparse weight in use, with sparse states
    Master,  ///< the dense master itself
  };

  /// Starts as the whole weight of the parameter. *Ownership:* the parameter outlives it.
  MasterWeight(Parameter& parameter, Remains remains);
  ~MasterWeight();
  MasterWeight(const MasterWeight&) = delete;
  MasterWeight& operator=(const MasterWeight&) = delete;

  /// *Shapes:* that of the parameter.
  const Tensor& values() const;
  /// Takes the parameter's values at its mask's positions, if something else has changed them: they
  /// were loaded, assigned or written. *Cost:* O(numel); O(1) if nothing has changed.
  void take_part();
  /// States that the parameter's values are those of the master, or will be, with the mask that is
  /// chosen next: there is nothing to take. Prunes the parameter.
  void note_part();
  /// From a checkpoint. The optimizer's states are dense from now on.
  void restore(Tensor values);
  /// Marks the parameter's values as those of a checkpoint, so that its destructor does not change
  /// them.
  void keep_part() { remains_ = Remains::Part; }

 private:
  Parameter& parameter_;
  Remains remains_;
  uint64_t seen_;  // the parameter's version when its values were those of the master
};

/// The current dense master of a parameter; null if it has none.
const Tensor* master_of(const Parameter& parameter);

/// While it exists, the parameter is dense: its values are its master's, so the optimizer trains
/// the master. `commit` ends this and applies the parameter's mask to the changed master. If a swap
/// is destroyed without it, because the step has thrown, the parameter gets its previous pattern
/// and values.
class MasterSwap final : public StepScope {
 public:
  /// Whether a new mask follows immediately, with values from the master.
  enum class Then { UseMask, ChooseMask };

  /// *Shapes:* gradient as the parameter: with respect to the part in use.
  MasterSwap(Parameter& parameter, MasterWeight& master, Tensor gradient, Then then);
  ~MasterSwap() override;
  void commit() override;

 private:
  Parameter& parameter_;
  MasterWeight& master_weight_;
  Tensor master_;
  PatternPtr pattern_;  // null once it is restored
  Tensor values_;       // those in the pattern
  Then then_;
};

}  // namespace lacuna
