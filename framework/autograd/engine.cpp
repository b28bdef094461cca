// Nodes run in the reverse order of their creation. An operation is created after the operations
// that made its inputs, so before a node runs, all users of its output have run and its gradient is
// complete. No recursion: the work list is a map ordered by sequence.
#include "lacuna/framework/autograd/engine.h"

#include <fmt/core.h>

#include <chrono>
#include <map>
#include <memory>
#include <new>
#include <utility>

#include "lacuna/framework/autograd/node.h"
#include "lacuna/framework/core/buffer.h"
#include "lacuna/framework/core/error.h"
#include "lacuna/framework/core/profile.hpp"
#include "lacuna/framework/core/shards.h"
#include "lacuna/framework/kernels/pointwise/reorder.hpp"

namespace lacuna {
namespace {

thread_local std::function<void(const NodeRun&)> trace;

struct Pending {
  std::shared_ptr<Node> node;
  Tensor gradient;
  Tensor second = {};  // to be added to the gradient by a node that takes two

  void add(const Tensor& more) {
    if (second.defined()) join();
    const bool keeps_two =
        gradient.defined() && node->takes_two(gradient) && gradient.shape() == more.shape();
    keeps_two ? void(second = more) : add_gradient(gradient, more);
  }
  void join() { add_gradient(gradient, std::exchange(second, Tensor())); }
};
// By sequence, largest first.
using WorkList = std::map<uint64_t, Pending, std::greater<>>;

void deliver(const Variable& input, const Tensor& gradient, WorkList& work) {
  if (const auto& creator = input.creator()) {
    Pending& pending = work[creator->sequence()];
    pending.node = creator;
    pending.add(gradient);
  } else {
    input.accumulate_gradient(gradient);
  }
}

// Gives the node the gradient that the other users of its first input have left, if the node can
// add to it.
void give_earlier(Node& node, WorkList& work) {
  if (!node.adds_to_first() || !node.needs(0)) return;
  const Variable& input = node.inputs()[0];
  const auto& creator = input.creator();
  const auto found = creator == nullptr ? work.end() : work.find(creator->sequence());
  if (found == work.end() || !found->second.gradient.defined()) return;
  if (found->second.gradient.shape() != input.shape()) return;  // an error that is reported later
  if (found->second.second.defined()) found->second.join();
  node.give_earlier(std::exchange(found->second.gradient, Tensor()));
}

std::vector<Tensor> backward_of(Node& node, const Tensor& gradient) try {
  return node.backward(gradient);
} catch (const std::bad_alloc& error) {
  throw MemoryError(fmt::format("the gradient of '{}' {}: {}", node.name(),
                                node.output_shape().to_string(), describe(error)));
}

std::vector<Tensor> run(Node& node, const Tensor& gradient) {
  if (node.released()) {
    throw StateError("backward ran a second time through '" + std::string(node.name()) +
                     "': the first pass freed the graph; run the forward pass again");
  }
  const ProfileSpan span(Work::Node, node.name(), node.sequence());
  if (!trace) return backward_of(node, gradient);
  NodeRun report{.name = std::string(node.name()),
                 .input_shapes = {},
                 .output_shape = node.output_shape(),
                 .saved_bytes = node.saved_bytes()};
  for (const Variable& input : node.inputs()) {
    if (input.defined()) report.input_shapes.push_back(input.shape());
  }
  const ConversionCount before = conversions_so_far();
  const auto start = std::chrono::steady_clock::now();
  std::vector<Tensor> gradients = backward_of(node, gradient);
  report.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  const ConversionCount converted = conversions_so_far() - before;
  report.conversions = converted.conversions;
  report.converted_bytes = converted.bytes;
  trace(report);
  return gradients;
}

}  // namespace

void backward(const Variable& loss) {
  if (loss.value().numel() != 1) {
    throw ShapeError("backward needs a loss with one element, found shape " +
                     loss.shape().to_string());
  }
  backward(loss, Tensor::full(loss.shape(), 1.0f));
}

void backward(const Variable& output, const Tensor& grad_output) {
  backward(std::span(&output, 1), std::span(&grad_output, 1));
}

namespace {

void require_output(const Variable& output, const Tensor& grad_output) {
  if (!output.requires_grad()) {
    throw StateError("backward: the value does not depend on anything that requires a gradient");
  }
  if (output.shape() != grad_output.shape()) {
    throw ShapeError("backward: the output has shape " + output.shape().to_string() +
                     ", its gradient " + grad_output.shape().to_string());
  }
}

}  // namespace

void backward(std::span<const Variable> outputs, std::span<const Tensor> grad_outputs) {
  if (outputs.size() != grad_outputs.size()) {
    throw StateError("backward: there are " + std::to_string(outputs.size()) + " outputs and " +
                     std::to_string(grad_outputs.size()) + " gradients");
  }
  for (size_t i = 0; i < outputs.size(); ++i) require_output(outputs[i], grad_outputs[i]);
  const NoGrad no_grad;
  WorkList work;
  for (size_t i = 0; i < outputs.size(); ++i) deliver(outputs[i], grad_outputs[i], work);
  while (!work.empty()) {
    Pending next = std::move(work.begin()->second);
    work.erase(work.begin());
    const ShardScope shard(next.node->shard());
    give_earlier(*next.node, work);
    if (next.second.defined()) next.node->give_second(std::move(next.second));
    const std::vector<Tensor> gradients = run(*next.node, next.gradient);
    const std::vector<Variable> inputs = next.node->inputs();
    if (const Tensor left = next.node->take_earlier(); left.defined()) {
      deliver(inputs[0], left, work);
    }
    next.node->release();
    for (size_t i = 0; i < gradients.size(); ++i) {
      if (gradients[i].defined() && inputs[i].requires_grad()) {
        deliver(inputs[i], gradients[i], work);
      }
    }
  }
}

std::string NodeRun::to_string() const {
  std::string inputs;
  for (const Shape& shape : input_shapes) {
    inputs += (inputs.empty() ? "" : ", ") + shape.to_string();
  }
  std::string line = fmt::format("{:<14} {} -> {}   {} bytes saved   {:.3f} ms", name, inputs,
                                 output_shape.to_string(), saved_bytes, seconds * 1e3);
  if (conversions > 0) {
    line += fmt::format("   {} conversion{}, {} bytes", conversions, conversions == 1 ? "" : "s",
                        converted_bytes);
  }
  return line;
}

BackwardTrace::BackwardTrace(std::function<void(const NodeRun&)> sink)
    : saved_(std::exchange(trace, std::move(sink))) {}

BackwardTrace::~BackwardTrace() { trace = std::move(saved_); }

}  // namespace lacuna
