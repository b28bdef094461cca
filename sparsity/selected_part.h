// SelectedPart: the weight that is used is a part of a dense master weight, chosen anew all the
// time: what SemiSparse and sparsifiers of weights share.
#pragma once

#include <cstdint>
#include <string>

#include "lacuna/sparsity/straight_through.h"

namespace lacuna {

/// Straight-through training of a dense master weight, of which `select` chooses the part that is
/// used, at every step or every few. *Cost:* dense weight gradient and states; the selection. A
/// mask that one step alone uses is never listed by positions.
class SelectedPart : public StraightThrough {
 protected:
  /// A mask is kept for `every` steps. `options` are without an update schedule. *Errors:*
  /// ConfigError, which begins with `type`, when `every` is below 1.
  SelectedPart(const std::string& type, DynamicOptions options, int64_t every);

  /// The elements of `master(parameter)` that are used. A function of them alone.
  virtual BitMask select(const Parameter& parameter) const = 0;

  Positions initial_positions(const Parameter& parameter) override;
  Positions first_positions(const Parameter& parameter, FirstMasks first) override;
  Positions update_positions(const Parameter& parameter, const Positions& present,
                             float sparsity) override;
  void update_parameter(Parameter& parameter) override;
  void on_apply(Module& module) override;
  void release() override;

 private:
  bool changes_every_step_;
};

}  // namespace lacuna
