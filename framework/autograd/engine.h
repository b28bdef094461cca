// The engine: runs the backward pass.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "lacuna/framework/autograd/variable.h"

namespace lacuna {

/// Computes the gradients of a scalar with respect to all leaves that it depends on, and adds them
/// to the leaves' gradients. The pass frees the graph, so it can run only once. *Errors:*
/// ShapeError unless `loss` has one element; StateError if it depends on no leaf or its graph has
/// been freed.
void backward(const Variable& loss);
/// Computes the gradients of all leaves from a given gradient of `output`. *Errors:* as above, and
/// ShapeError when the shapes differ.
void backward(const Variable& output, const Tensor& grad_output);
/// Computes gradients from those of several outputs at once, such as the losses of a batch's
/// shards: nodes run in the reverse order of their creation, whichever output they belong to.
/// *Errors:* as above, for each output; StateError if there are not as many gradients; MemoryError,
/// with the node, if there is no memory.
void backward(std::span<const Variable> outputs, std::span<const Tensor> grad_outputs);

/// The engine's report on a node that it has run.
struct NodeRun {
  std::string name;
  std::vector<Shape> input_shapes;
  Shape output_shape;
  int64_t saved_bytes = 0;
  double seconds = 0.0;
  int64_t conversions = 0;      ///< of activations and gradients between storage orders
  int64_t converted_bytes = 0;  ///< bytes of the results

  /// "linear     [128, 784], [300, 784], [300] -> [128, 300]   401408 bytes saved   0.412 ms" and,
  /// if there are any, "   2 conversions, 553984 bytes".
  std::string to_string() const;
};

/// While it exists, the engine reports every node that it runs in this thread, for debugging.
class BackwardTrace {
 public:
  explicit BackwardTrace(std::function<void(const NodeRun&)> sink);
  ~BackwardTrace();
  BackwardTrace(const BackwardTrace&) = delete;
  BackwardTrace& operator=(const BackwardTrace&) = delete;

 private:
  std::function<void(const NodeRun&)> saved_;
};

}  // namespace lacuna
