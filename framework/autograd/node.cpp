#include "lacuna/framework/autograd/node.h"

#include <atomic>
#include <optional>

#include "lacuna/framework/core/error.h"
#include "lacuna/framework/core/shards.h"
#include "lacuna/framework/kernels/pointwise/elementwise.hpp"
#include "lacuna/framework/kernels/pointwise/reorder.hpp"

namespace lacuna {
namespace {

std::atomic<uint64_t> next_sequence{0};
thread_local std::optional<uint64_t> reserved;

uint64_t take_place() {
  if (!reserved) return next_sequence++;
  const uint64_t place = *reserved;
  reserved.reset();
  return place;
}

}  // namespace

Node::Node() : sequence_(take_place()), shard_(current_shard()) {}

uint64_t reserve_place() { return next_sequence++; }

NodePlace::NodePlace(uint64_t place) { reserved = place; }
NodePlace::~NodePlace() { reserved.reset(); }

Node::~Node() {
  // A long chain must not be destroyed by recursion, with one stack frame per operation: nodes
  // destroyed here move their inputs to a list that the outermost destructor empties.
  static thread_local std::vector<Variable>* pending = nullptr;
  if (pending != nullptr) {
    for (Variable& input : inputs_) pending->push_back(std::move(input));
    return;
  }
  std::vector<Variable> list = std::move(inputs_);
  pending = &list;
  while (!list.empty()) {
    const Variable last = std::move(list.back());
    list.pop_back();
  }
  pending = nullptr;
}

int64_t Node::saved_bytes() {
  int64_t bytes = 0;
  for (const Tensor* tensor : saved()) bytes += tensor->bytes();
  return bytes;
}

void Node::release() {
  for (Tensor* tensor : saved()) *tensor = Tensor();
  inputs_.clear();
  released_ = true;
}

void add_gradient(Tensor& sum, const Tensor& gradient) {
  if (!sum.defined()) {
    sum = gradient;
    return;
  }
  if (sum.shape() != gradient.shape()) {
    throw ShapeError("two gradients of one value have shapes " + sum.shape().to_string() + " and " +
                     gradient.shape().to_string());
  }
  const Tensor other = reordered(gradient, sum.order());
  if (!sum.unique()) sum = sum.clone();
  accumulate(other.storage(), sum.mutable_storage());
}

}  // namespace lacuna
