// Node: one recorded differentiable operation, with the data of its backward rule.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <memory>
#include <string_view>
#include <utility>
#include <vector>

#include "lacuna/framework/autograd/variable.h"

namespace lacuna {

/// One operation of the graph. A subclass holds the tensors it saved as members, and its backward
/// rule. Nodes are made by `record` and run by the engine (engine.h).
class Node {
 public:
  Node();
  virtual ~Node();
  Node(const Node&) = delete;
  Node& operator=(const Node&) = delete;

  /// The operation's name, such as "linear".
  virtual std::string_view name() const = 0;
  /// Gradients of the inputs from the gradient of the output: one per input, in their shapes,
  /// undefined where `needs` is false or where the node has delivered it itself (to a weight). If
  /// the gradient of the output is unique, its storage may be written over.
  virtual std::vector<Tensor> backward(const Tensor& grad_output) = 0;
  /// Whether `backward` can add its gradient of the first input to the gradient that the other
  /// users of that input have left, which it then takes (`take_earlier`). This saves a pass. If it
  /// takes it, gradient 0 is the sum.
  virtual bool adds_to_first() const { return false; }
  /// Whether `backward` can take the gradient of the output as two tensors of its shape, of which
  /// this is the first, and whose sum it is: one pass less where two users have left a gradient.
  /// The other is `take_second`.
  virtual bool takes_two(const Tensor& /*first*/) const { return false; }
  /// The tensors saved for backward: freed by the engine once the node has run.
  virtual std::vector<Tensor*> saved() { return {}; }

  const std::vector<Variable>& inputs() const { return inputs_; }
  /// Shape of the output.
  const Shape& output_shape() const { return output_shape_; }
  /// Place in the order of creation: an input's creator always has a smaller one.
  uint64_t sequence() const { return sequence_; }
  /// The shard for which it was recorded and is run; −1: none (core/shards.h).
  int64_t shard() const { return shard_; }
  bool needs(size_t input) const { return inputs_[input].requires_grad(); }
  int64_t saved_bytes();

  /// Frees saved tensors and inputs; a second backward pass through the node is then an error.
  void release();
  bool released() const { return released_; }

  /// For the engine: the gradient of the first input that the other users have left, in its shape;
  /// and the rest of it that `backward` did not take.
  void give_earlier(Tensor gradient) { earlier_ = std::move(gradient); }
  Tensor take_earlier() { return std::exchange(earlier_, Tensor()); }
  /// A tensor to add to the gradient of the output; undefined: none.
  void give_second(Tensor gradient) { second_ = std::move(gradient); }
  Tensor take_second() { return std::exchange(second_, Tensor()); }

 private:
  template <class Op, class... Saved>
  friend Variable record(Tensor value, std::vector<Variable> inputs, Saved&&... saved);

  std::vector<Variable> inputs_;
  Shape output_shape_;
  uint64_t sequence_;
  int64_t shard_;
  bool released_ = false;
  Tensor earlier_, second_;
};

/// A place in the order of creation for a node that is made later: after all existing nodes, and
/// before all nodes that are made in between.
uint64_t reserve_place();

/// While it exists, the next node that this thread makes gets this place. *Requires* that the place
/// is free, and that the node's inputs were made before it.
class NodePlace {
 public:
  explicit NodePlace(uint64_t place);
  ~NodePlace();
  NodePlace(const NodePlace&) = delete;
  NodePlace& operator=(const NodePlace&) = delete;
};

/// The output variable of an operation. If some input requires a gradient and recording is on, a
/// node `Op{saved...}` is made for it; otherwise the value is a constant and nothing is saved.
template <class Op, class... Saved>
Variable record(Tensor value, std::vector<Variable> inputs, Saved&&... saved) {
  bool needed = false;
  for (const Variable& input : inputs) needed |= input.requires_grad();
  if (!needed || !grad_enabled()) return Variable(std::move(value));
  auto node = std::make_shared<Op>(std::forward<Saved>(saved)...);
  static_cast<Node&>(*node).output_shape_ = value.shape();
  for (Variable& input : inputs) {  // the node saves the values that it needs
    static_cast<Node&>(*node).inputs_.push_back(input.without_value());
  }
  return Variable::output(std::move(value), std::move(node));
}

/// sum += gradient; shares the gradient's memory if there is no sum yet.
void add_gradient(Tensor& sum, const Tensor& gradient);

}  // namespace lacuna
