// Variable: a tensor that remembers the operation that made it, for the backward pass.
#pragma once

#include <memory>

#include "lacuna/framework/core/tensor.h"
#include "lacuna/framework/param/parameter.h"

namespace lacuna {

class DeferredValue;
class Node;
struct NmValue;

/// A value in the computation. Copies are handles to the same value and gradient.
class Variable {
 public:
  /// Undefined: represents an argument that is not given (a linear layer without bias).
  Variable() = default;
  /// A constant: no gradient is computed for it.
  Variable(Tensor value);  // NOLINT: a tensor is usable wherever a variable is
  /// A leaf whose gradient is kept in `gradient()`, adding up over several backward calls.
  static Variable leaf(Tensor value);
  /// A leaf whose gradient goes to the parameter, or a constant if it is frozen. The value is the
  /// parameter's, in its logical shape. *Errors:* StateError if the parameter's layout does not
  /// store every position.
  static Variable of(const ParameterPtr& parameter);
  /// The output of an operation.
  static Variable output(Tensor value, std::shared_ptr<Node> creator);

  /// A value of that shape that is computed when it or its graph is needed, and never if its users
  /// fuse it into their own computation.
  static Variable deferred(const Shape& shape, std::shared_ptr<DeferredValue> value);

  bool defined() const { return state_ != nullptr; }
  /// *Errors:* StateError if it is undefined.
  const Tensor& value() const;
  const Shape& shape() const;
  bool requires_grad() const { return defined() && (creator() || is_leaf()); }
  /// A leaf that accumulates a gradient.
  bool is_leaf() const;

  /// The object that will compute the value; null if it is computed, or was never deferred.
  const std::shared_ptr<DeferredValue>& deferred_value() const;

  /// The value as an N:M matrix, if its operation has one; else null.
  const std::shared_ptr<const NmValue>& nm() const;
  /// Attaches the N:M form of the value; called by operations that produce one (keep_nm).
  /// *Requires* the matrix to hold the value.
  void set_nm(std::shared_ptr<const NmValue> nm);

  /// The gradient that a `leaf` has accumulated; undefined before the first backward, and for a
  /// variable made by `of`, whose gradient is the parameter's. *Errors:* StateError if it is no
  /// leaf.
  const Tensor& gradient() const;
  void zero_gradient();
  /// Adds to the gradient of the leaf (or of its parameter). Called by the engine.
  void accumulate_gradient(const Tensor& gradient) const;

  /// This variable of the graph without its value, as nodes keep their inputs. A leaf does not
  /// change.
  Variable without_value() const;

  /// The node that made it; null for constants and leaves.
  const std::shared_ptr<Node>& creator() const;

 private:
  void settle() const;

  struct State;
  std::shared_ptr<State> state_;
};

/// A value that is not computed yet. Operations that can fuse it identify its class by a dynamic
/// cast; for all others it is computed.
class DeferredValue {
 public:
  virtual ~DeferredValue() = default;
  /// The variable with its value and its graph. Called once.
  virtual Variable compute() = 0;
  /// Whether no gradient is computed for it, so that it may be read in place of the computed value
  /// whether operations are recorded or not.
  virtual bool is_constant() const { return false; }
};

/// Whether operations record nodes in this thread.
bool grad_enabled();

/// While it exists, operations in this thread record nothing: for evaluation.
class NoGrad {
 public:
  NoGrad();
  ~NoGrad();
  NoGrad(const NoGrad&) = delete;
  NoGrad& operator=(const NoGrad&) = delete;

 private:
  bool saved_;
};

}  // namespace lacuna
