// BatchUser: for modules whose output for an example may depend on others of its batch.
#pragma once

namespace lacuna {

/// A second base of such modules.
class BatchUser {
 public:
  virtual ~BatchUser() = default;
  /// Whether it needs more than one value a channel when it is trained.
  virtual bool needs_batch() const = 0;
  /// Whether the examples of a batch change each other's outputs in evaluation, too.
  virtual bool mixes_examples() const = 0;
};

}  // namespace lacuna
