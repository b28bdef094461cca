// MasterWeight: the dense weight that is trained where a parameter shows only a part of it.
#pragma once

#include "lacuna/framework/core/tensor.h"
#include "lacuna/framework/param/parameter.h"
#include "lacuna/optimizers/step_scope.h"

namespace lacuna {

/// The dense master of one parameter: an array in its shape, kept in the parameter's slots, of
/// which the parameter's values are the part that its mask shows. The optimizer trains the master,
/// with dense states; `MasterSwap` lays it out for that. Released by its destructor.
class MasterWeight {
 public:
  /// The state of the parameter after the master is gone.
  enum class Remains {
    Part,    ///< the sparse weight that is used, with sparse states
    Master,  ///< the dense master itself
  };

  /// Begins as the whole weight that the parameter has. *Ownership:* the parameter outlives it.
  MasterWeight(Parameter& parameter, Remains remains);
  ~MasterWeight();
  MasterWeight(const MasterWeight&) = delete;
  MasterWeight& operator=(const MasterWeight&) = delete;

  /// *Shapes:* that of the parameter.
  const Tensor& values() const;
  /// From a checkpoint. The optimizer's states are dense from now on.
  void restore(Tensor values);
  /// Marks the parameter as holding a checkpoint's values, so that it stays whatever remains.
  void keep_part() { remains_ = Remains::Part; }

 private:
  Parameter& parameter_;
  Remains remains_;
};

/// The dense master that a parameter has now; null where it has none.
const Tensor* master_of(const Parameter& parameter);

/// For as long as it lives the parameter is dense: its values are its master's, so that the
/// optimizer trains that. `commit` ends this with the parameter's mask over the changed master. A
/// swap that is destroyed without it, because the step has thrown, puts back the pattern and the
/// values that the parameter had.
class MasterSwap final : public StepScope {
 public:
  /// Whether a new mask follows at once, which will take its values from the master.
  enum class Then { UseMask, ChooseMask };

  /// *Shapes:* gradient as the parameter: with respect to the part that is used.
  MasterSwap(Parameter& parameter, const MasterWeight& master, Tensor gradient, Then then);
  ~MasterSwap() override;
  void commit() override;

 private:
  Parameter& parameter_;
  Tensor master_;
  PatternPtr pattern_;  // null once it is back
  Tensor values_;       // those in the pattern
  Then then_;
};

}  // namespace lacuna
