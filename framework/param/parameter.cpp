#include "lacuna/framework/param/parameter.h"

#include <algorithm>
#include <utility>

#include "lacuna/framework/core/error.h"
#include "lacuna/framework/kernels/elementwise.h"

namespace lacuna {

Parameter::Parameter(const Shape& shape, const Initializer& initializer)
    : pattern_(Pattern::dense(shape)), initializer_(initializer) {}

void Parameter::initialize(uint64_t seed) {
  seed_ = seed;
  values_ = Tensor();
}

Shape Parameter::stored_shape() const {
  const int64_t stored = pattern_->stored_size();
  return stored == numel() ? shape() : Shape{stored};
}

void Parameter::materialize() const {
  if (values_.defined()) return;
  values_ = Tensor::empty(shape());
  initializer_.fill(CounterRng(seed_, name_), values_.mutable_storage());
  pattern_->layout().prune(*pattern_, values_.mutable_storage());
}

const Tensor& Parameter::values() const {
  materialize();
  return values_;
}

Tensor& Parameter::mutable_values() {
  materialize();
  return values_;
}

Tensor Parameter::to_dense() const {
  return pattern_->layout().to_dense(*pattern_, values().storage());
}

void Parameter::assign(const Tensor& dense) {
  if (dense.shape() != shape()) {
    throw ShapeError("parameter '" + name_ + "' has shape " + shape().to_string() +
                     ", values of shape " + dense.shape().to_string() + " were given");
  }
  if (!values_.defined()) values_ = Tensor::empty(stored_shape());
  pattern_->layout().from_dense(*pattern_, dense.storage(), values_.mutable_storage());
}

void Parameter::set_pattern(PatternPtr pattern) {
  if (pattern->shape() != shape()) {
    throw ShapeError("parameter '" + name_ + "' has shape " + shape().to_string() +
                     ", a pattern of shape " + pattern->shape().to_string() + " was given");
  }
  materialize();
  const PatternPtr old = std::exchange(pattern_, std::move(pattern));
  const auto move = [&](Tensor& array) {
    const Tensor dense = old->layout().to_dense(*old, array.storage());
    array = Tensor::empty(stored_shape());
    pattern_->layout().from_dense(*pattern_, dense.storage(), array.mutable_storage());
  };
  move(values_);
  if (gradient_.defined()) move(gradient_);
  for (auto& [name, slot] : slots_) {
    if (!slot.requires_dense) move(slot.values);
  }
}

void Parameter::prune() {
  const Layout& layout = pattern_->layout();
  layout.prune(*pattern_, mutable_values().mutable_storage());
  if (has_gradient_) layout.prune(*pattern_, gradient_.mutable_storage());
  for (auto& [name, slot] : slots_) {
    if (!slot.requires_dense) layout.prune(*pattern_, slot.values.mutable_storage());
  }
}

ByteArray Parameter::mask() const {
  if (pattern_->is_dense()) {
    return {shape(), std::vector<uint8_t>(static_cast<size_t>(numel()), 1)};
  }
  return {shape(), pattern_->mask().to_bytes()};
}

const Tensor& Parameter::gradient() const {
  if (!has_gradient_) {
    throw StateError("parameter '" + name_ + "' has no gradient: call backward first");
  }
  return gradient_;
}

Tensor& Parameter::mutable_gradient() {
  gradient();
  return gradient_;
}

Tensor& Parameter::gradient_buffer() {
  if (!gradient_.defined()) gradient_ = Tensor::empty(stored_shape());
  return gradient_;
}

void Parameter::accumulate(const Tensor& gradient) {
  if (gradient.shape() != shape()) {
    throw ShapeError("the gradient of parameter '" + name_ + "' has shape " +
                     gradient.shape().to_string() + ", the parameter " + shape().to_string());
  }
  const Tensor rows = gradient.to(Order::RowMajor);
  if (observer_ != nullptr) observer_->observe(rows);
  Tensor& buffer = gradient_buffer();
  if (!has_gradient_) {
    pattern_->layout().from_dense(*pattern_, rows.storage(), buffer.mutable_storage());
  } else {
    Tensor part = Tensor::empty(stored_shape());
    pattern_->layout().from_dense(*pattern_, rows.storage(), part.mutable_storage());
    lacuna::accumulate(part.storage(), buffer.mutable_storage());
  }
  has_gradient_ = true;
}

void Parameter::zero_gradient() {
  has_gradient_ = false;
  if (observer_ != nullptr) observer_->reset();
}

void Parameter::accumulate_product(const Tensor& dy, const Tensor& x) {
  if (observer_ != nullptr) {
    Tensor dense = Tensor::empty(shape());
    dense_layout().weight_gradient(*Pattern::dense(shape()), dy, x, Accumulate::No,
                                   dense.mutable_storage());
    accumulate(dense);
    return;
  }
  pattern_->layout().weight_gradient(*pattern_, dy, x,
                                     has_gradient_ ? Accumulate::Yes : Accumulate::No,
                                     gradient_buffer().mutable_storage());
  has_gradient_ = true;
}

Tensor& Parameter::slot(const std::string& name) {
  Slot& slot = slots_[name];
  if (!slot.values.defined()) slot.values = Tensor::zeros(stored_shape());
  return slot.values;
}

Slot& Parameter::dense_slot(const std::string& name) {
  Slot& slot = slots_[name];
  slot.requires_dense = true;
  if (!slot.values.defined()) slot.values = Tensor::zeros(shape());
  return slot;
}

int64_t Parameter::bytes() const {
  int64_t total = pattern_->index_bytes() + values_.bytes() + gradient_.bytes();
  for (const auto& [name, slot] : slots_) total += slot.values.bytes();
  return total;
}

}  // namespace lacuna
