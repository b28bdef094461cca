#include "lacuna/framework/param/parameter.h"

#include <fmt/core.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "lacuna/framework/core/error.h"
#include "lacuna/framework/core/plural.hpp"
#include "lacuna/framework/core/shards.h"
#include "lacuna/framework/kernels/pointwise/elementwise.hpp"
#include "lacuna/framework/kernels/pointwise/reorder.hpp"
#include "lacuna/framework/param/gradient_collector.h"
#include "lacuna/framework/param/row_gradient.h"

namespace lacuna {

Parameter::Parameter(const Shape& shape, const Initializer& initializer)
    : pattern_(Pattern::dense(shape)), initializer_(initializer) {}

void Parameter::initialize(uint64_t seed) {
  seed_ = seed;
  values_ = Tensor();
  is_as_drawn_ = true;
  ++*version_;
}

Shape Parameter::stored_shape() const { return pattern_->stored_shape(); }

void Parameter::materialize() const {
  if (values_.defined()) return;
  try {
    draw();
  } catch (const std::bad_alloc& error) {
    values_ = Tensor();
    throw MemoryError(fmt::format("parameter '{}' {} with {} values: {}", name_,
                                  shape().to_string(), pattern_->nnz(), describe(error)));
  }
}

void Parameter::draw() const {
  values_ = Tensor::empty(stored_shape());
  const CounterRng rng(seed_, name_);
  const bool is_whole = pattern_->nnz() == numel();  // where fans do not change
  if (pattern_->stores_every_position() &&
      (is_whole || initializer_.fan == Initializer::Fan::Fixed)) {
    initializer_.fill(rng, values_.mutable_storage());
    pattern_->layout().prune(*pattern_, values_.mutable_storage());
    return;
  }
  Tensor elements = Tensor::empty(Shape{pattern_->nnz()});
  initializer_.fill(rng, pattern_->positions(), elements.mutable_storage(), matrix_taps(shape()));
  pattern_->layout().expand(*pattern_, elements.storage(), values_.mutable_storage());
}

const Tensor& Parameter::values() const {
  materialize();
  return values_;
}

Tensor& Parameter::mutable_values() {
  materialize();
  ++*version_;
  pruned_ = false;
  is_as_drawn_ = false;
  return values_;
}

Tensor Parameter::to_dense() const {
  return pattern_->layout().to_dense(*pattern_, values().storage());
}

void Parameter::assign(const Tensor& dense) {
  if (dense.shape() != shape()) {
    throw ShapeError("parameter '" + name_ + "' has shape " + shape().to_string() +
                     ", but the values given have shape " + dense.shape().to_string());
  }
  if (!values_.defined()) values_ = Tensor::empty(stored_shape());
  ++*version_;
  is_as_drawn_ = false;
  pattern_->layout().from_dense(*pattern_, dense.storage(), values_.mutable_storage());
}

void Parameter::assign_elements(const Tensor& elements) {
  values_ = expanded(elements);
  ++*version_;
  is_as_drawn_ = false;
}

void Parameter::set_pattern(PatternPtr pattern) {
  if (pattern->shape() != shape()) {
    throw ShapeError("parameter '" + name_ + "' has shape " + shape().to_string() +
                     ", but the pattern given has shape " + pattern->shape().to_string());
  }
  if (pattern->stores_as(*pattern_)) {
    pattern_ = std::move(pattern);
    *derived_ = {};  // another lifetime derives other arrays
    ++*version_;
    return;
  }
  if (!pattern_->stores_every_position() && !pattern->stores_every_position()) {
    const PatternMove move(*pattern_, *pattern, pattern_->positions(), pattern->positions());
    set_pattern(std::move(pattern), move);
    return;
  }
  const PatternPtr old = pattern_;
  move_to(std::move(pattern), [&](Tensor& array) {
    const Tensor dense = old->stores_every_position()
                             ? std::exchange(array, Tensor())
                             : old->layout().to_dense(*old, array.storage());
    array = Tensor::empty(stored_shape());
    pattern_->layout().from_dense(*pattern_, dense.storage(), array.mutable_storage());
  });
}

void Parameter::set_pattern(PatternPtr pattern, const PatternMove& move) {
  move_to(std::move(pattern), [&](Tensor& array) { array = move(array); });
}

template <class Move>
void Parameter::move_to(PatternPtr pattern, const Move& move) {
  // First values are drawn under the new pattern, unless the present one is not dense: values that
  // it does not store are never drawn later.
  const bool moves = !is_as_drawn_ || !pattern_->is_dense();
  if (moves) {
    materialize();
    is_as_drawn_ = false;
  } else {
    values_ = Tensor();
  }
  give_up_rows();
  *derived_ = {};
  ++*version_;
  pruned_ = false;
  pattern_ = std::move(pattern);
  if (moves) move(values_);
  if (has_gradient_) {
    move(gradient_);
  } else {
    gradient_ = Tensor();
  }
  for (auto& [name, slot] : slots_) {
    if (!slot.requires_dense) move(slot.values);
  }
}

void Parameter::replace(PatternPtr pattern, Tensor values, Tensor gradient) {
  const Shape stored = pattern->stored_shape();
  const bool fits = pattern->shape() == shape() && values.shape() == stored &&
                    (!gradient.defined() || gradient.shape() == stored);
  if (!fits) {
    throw ShapeError("parameter '" + name_ + "' of shape " + shape().to_string() +
                     " was given a pattern of shape " + pattern->shape().to_string() +
                     " with arrays of shape " + values.shape().to_string() + ", expected " +
                     stored.to_string());
  }
  has_gradient_ = false;
  row_gradient_.reset();
  const auto is_aligned = [](const auto& entry) { return !entry.second.requires_dense; };
  if (std::ranges::any_of(slots_, is_aligned)) {
    set_pattern(std::move(pattern));
  } else {
    *derived_ = {};
    pattern_ = std::move(pattern);
  }
  values_ = std::move(values);
  is_as_drawn_ = false;
  ++*version_;
  pruned_ = false;
  gradient_ = std::move(gradient);
  has_gradient_ = gradient_.defined();
}

Tensor Parameter::compacted(const Tensor& stored) const {
  Tensor elements = Tensor::empty(Shape{pattern_->nnz()});
  if (stored.shape() != stored_shape()) {
    throw ShapeError("an array aligned to parameter '" + name_ + "' has shape " +
                     stored_shape().to_string() + ", found " + stored.shape().to_string());
  }
  pattern_->layout().compact(*pattern_, stored.storage(), elements.mutable_storage());
  return elements;
}

Tensor Parameter::expanded(const Tensor& elements) const {
  if (elements.shape() != Shape{pattern_->nnz()}) {
    throw ShapeError(fmt::format("parameter '{}' has {}, but the array given has shape {}", name_,
                                 plural(pattern_->nnz(), "nonzero"), elements.shape().to_string()));
  }
  Tensor stored = Tensor::empty(stored_shape());
  pattern_->layout().expand(*pattern_, elements.storage(), stored.mutable_storage());
  return stored;
}

WeightReference Parameter::as_weight(std::shared_ptr<GradientSink> sink) const {
  return {.name = name_,
          .pattern = pattern_,
          .values = values(),
          .sink = std::move(sink),
          .version = *version_,
          .current = version_,
          .derived = derived_};
}

void Parameter::prune() {
  const Layout& layout = pattern_->layout();
  if (pruned_ || !pattern_->stores_every_position()) return;  // then nothing is stored there
  layout.prune(*pattern_, mutable_values().mutable_storage());
  if (has_gradient_ && row_gradient_ == nullptr) {
    layout.prune(*pattern_, gradient_.mutable_storage());
  }
  for (auto& [name, slot] : slots_) {
    if (!slot.requires_dense) layout.prune(*pattern_, slot.values.mutable_storage());
  }
  pruned_ = true;
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
  if (row_gradient_ != nullptr && !gradient_.defined()) {
    gradient_ = row_gradient_->to_dense(shape());
  }
  return gradient_;
}

Tensor& Parameter::mutable_gradient() {
  gradient();
  give_up_rows();
  pruned_ = false;
  return gradient_;
}

Tensor& Parameter::gradient_buffer() {
  if (!gradient_.defined()) gradient_ = Tensor::empty(stored_shape());
  return gradient_;
}

// Adds to the gradient or, for a shard, to a separate array.
void Parameter::contribute(const Computation& compute) {
  if (collector_ != nullptr && current_shard() >= 0) {
    Tensor part = Tensor::empty(stored_shape());
    compute(part.mutable_storage(), Accumulate::No);
    collector_->add(*this, current_shard(), std::move(part));
    return;
  }
  give_up_rows();
  compute(gradient_buffer().mutable_storage(), has_gradient_ ? Accumulate::Yes : Accumulate::No);
  has_gradient_ = true;
}

void Parameter::add_gradient(const Tensor& aligned) {
  if (aligned.shape() != stored_shape()) {
    throw ShapeError("a gradient aligned to parameter '" + name_ + "' has shape " +
                     stored_shape().to_string() + ", found " + aligned.shape().to_string());
  }
  if (has_gradient_) {
    lacuna::accumulate(aligned.storage(), mutable_gradient().mutable_storage());
    return;
  }
  gradient_ = aligned;
  has_gradient_ = true;
  pruned_ = false;
}

void Parameter::accumulate(const Tensor& gradient) {
  if (gradient.shape() != shape()) {
    throw ShapeError("the gradient of parameter '" + name_ + "' has shape " +
                     gradient.shape().to_string() + ", the parameter " + shape().to_string());
  }
  const Tensor rows = reordered(gradient, Order::RowMajor);
  if (tap_ != nullptr) {
    tap_->observe(rows);
    if (tap_->route() == GradientRoute::TapOnly) return;
  }
  contribute([&](std::span<float> into, Accumulate accumulate) {
    if (accumulate == Accumulate::No) {
      pattern_->layout().from_dense(*pattern_, rows.storage(), into);
      return;
    }
    Tensor part = Tensor::empty(stored_shape());
    pattern_->layout().from_dense(*pattern_, rows.storage(), part.mutable_storage());
    lacuna::accumulate(part.storage(), into);
  });
}

void Parameter::zero_gradient() {
  has_gradient_ = false;
  if (row_gradient_ != nullptr) {
    row_gradient_.reset();
    gradient_ = Tensor();
  }
  if (tap_ != nullptr) tap_->reset();
}

void Parameter::accumulate_product(const Tensor& dy, const Tensor& x) {
  const bool takes = tap_ != nullptr && tap_->route() == GradientRoute::TapOnly;
  if (tap_ != nullptr && (takes || !pattern_->stores_every_position())) {
    tap_->observe_product(dy, x);
    if (takes) return;
  } else if (tap_ != nullptr) {
    Tensor dense = Tensor::empty(shape());
    dense_layout().weight_gradient(*Pattern::dense(shape()), dy, x, Accumulate::No,
                                   dense.mutable_storage());
    accumulate(dense);
    return;
  }
  contribute([&](std::span<float> into, Accumulate accumulate) {
    pattern_->layout().weight_gradient(*pattern_, dy, x, accumulate, into);
  });
}

void Parameter::accumulate_convolution(const ConvolutionShape& shape, const Tensor& dy,
                                       const Tensor& x) {
  if (tap_ != nullptr) return GradientSink::accumulate_convolution(shape, dy, x);
  contribute([&](std::span<float> into, Accumulate accumulate) {
    pattern_->layout().convolutions(shape).weight_gradient(*pattern_, shape, dy, x, accumulate,
                                                           into);
  });
}

void Parameter::accumulate_computed(const Computation& compute) {
  if (tap_ != nullptr || !pattern_->is_dense()) {
    Tensor dense = Tensor::empty(shape());
    compute(dense.mutable_storage(), Accumulate::No);
    accumulate(dense);
    return;
  }
  contribute(compute);
}

Tensor& Parameter::slot(const std::string& name) {
  pruned_ = false;
  Slot& slot = slots_[name];
  if (!slot.values.defined()) slot.values = Tensor::zeros(stored_shape());
  return slot.values;
}

Slot& Parameter::dense_slot(const std::string& name) {
  pruned_ = false;
  Slot& slot = slots_[name];
  slot.requires_dense = true;
  if (!slot.values.defined()) slot.values = Tensor::zeros(shape());
  return slot;
}

ParameterBytes Parameter::byte_counts() const {
  ParameterBytes bytes{.values = values_.bytes(),
                       .derived = derived_->array.bytes() + bytes_by_row(),
                       .gradient = gradient_.bytes(),
                       .index = pattern_->index_bytes()};
  if (row_gradient_ != nullptr) bytes.gradient += row_gradient_->bytes();
  for (const auto& [name, slot] : slots_) bytes.states += slot.values.bytes();
  return bytes;
}

}  // namespace lacuna
