// RowByRow: base class of a module that computes each row of its input independently.
#pragma once

namespace lacuna {

/// An additional base class of such modules, [..., in] → [..., out]: if the outputs of the last
/// layer do not fit into memory, an evaluation runs it on some rows at a time.
class RowByRow {
 public:
  virtual ~RowByRow() = default;
};

}  // namespace lacuna
