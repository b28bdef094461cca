// BatchUser: for modules whose output for an example may depend on other examples of its batch.
#pragma once

namespace lacuna {

/// An additional base class of such modules.
class BatchUser {
 public:
  virtual ~BatchUser() = default;
  /// Whether it needs more than one value per channel in training.
  virtual bool needs_batch() const = 0;
  /// Whether the examples of a batch affect each other's outputs in evaluation, too.
  virtual bool mixes_examples() const = 0;
};

}  // namespace lacuna
