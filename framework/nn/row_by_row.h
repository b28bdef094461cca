// RowByRow: the base of a module that computes each row of its input by itself.
#pragma once

namespace lacuna {

/// A second base of such modules, [..., in] → [..., out]: where the outputs of the last layer are
/// too many for the memory, an evaluation runs it on some rows at a time.
class RowByRow {
 public:
  virtual ~RowByRow() = default;
};

}  // namespace lacuna
