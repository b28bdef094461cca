#include "lacuna/framework/core/tensor.h"

#include <fmt/core.h>

#include <algorithm>
#include <string>
#include <utility>

#include "lacuna/framework/core/error.h"

namespace lacuna {
namespace {

int64_t stored_elements(const Shape& shape, Order order) {
  if (order == Order::RowMajor) return shape.numel();
  return (shape.batch() + kSlabWidth - 1) / kSlabWidth * kSlabWidth * shape.features();
}

int64_t slab_index(int64_t row, int64_t column, int64_t features) {
  return (row / kSlabWidth * features + column) * kSlabWidth + row % kSlabWidth;
}

}  // namespace

const char* to_string(Order order) {
  return order == Order::RowMajor ? "row-major" : "batch slabs";
}

Tensor Tensor::empty(const Shape& shape, Order order) {
  Tensor tensor;
  tensor.shape_ = shape;
  tensor.order_ = order;
  const int64_t size = stored_elements(shape, order);
  tensor.buffer_ = std::make_shared<Buffer>(static_cast<size_t>(size) * sizeof(float));
  if (order == Order::BatchSlabs && shape.batch() % kSlabWidth != 0) {
    const int64_t last_slab = kSlabWidth * shape.features();
    std::fill_n(tensor.mutable_data(order) + (size - last_slab), last_slab, 0.0f);
  }
  return tensor;
}

Tensor Tensor::zeros(const Shape& shape, Order order) {
  Tensor tensor = empty(shape, order);
  std::ranges::fill(tensor.mutable_storage(), 0.0f);
  return tensor;
}

Tensor Tensor::full(const Shape& shape, float value) {
  Tensor tensor = empty(shape);
  std::ranges::fill(tensor.mutable_storage(), value);
  return tensor;
}

Tensor Tensor::scalar(float value) { return full(Shape{}, value); }

Tensor Tensor::from(const Shape& shape, std::span<const float> values) {
  if (static_cast<int64_t>(values.size()) != shape.numel()) {
    throw ShapeError(fmt::format("a tensor of shape {} has {} elements, found {} values",
                                 shape.to_string(), shape.numel(), values.size()));
  }
  Tensor tensor = empty(shape);
  std::ranges::copy(values, tensor.mutable_data());
  return tensor;
}

void Tensor::require_order(Order order) const {
  if (!defined()) throw StateError("the data of an undefined tensor was asked for");
  if (order != order_) {
    throw StateError(std::string("a tensor of shape ") + shape_.to_string() + " is stored in " +
                     to_string(order_) + ", its data was asked for in " + to_string(order) +
                     "; convert it with to()");
  }
}

const float* Tensor::data(Order order) const {
  require_order(order);
  return static_cast<const float*>(buffer_->data());
}

float* Tensor::mutable_data(Order order) {
  require_order(order);
  return static_cast<float*>(buffer_->data());
}

std::span<const float> Tensor::storage() const {
  return {data(order_), static_cast<size_t>(storage_size())};
}

std::span<float> Tensor::mutable_storage() {
  return {mutable_data(order_), static_cast<size_t>(storage_size())};
}

int64_t Tensor::storage_size() const { return defined() ? stored_elements(shape_, order_) : 0; }

Tensor Tensor::to(Order order) const {
  if (order == order_) return *this;
  Tensor converted = empty(shape_, order);
  const float* from = data(order_);
  float* into = converted.mutable_data(order);
  const int64_t rows = shape_.batch(), columns = shape_.features();
  for (int64_t row = 0; row < rows; ++row) {
    for (int64_t column = 0; column < columns; ++column) {
      const int64_t flat = row * columns + column, slab = slab_index(row, column, columns);
      if (order == Order::RowMajor) {
        into[flat] = from[slab];
      } else {
        into[slab] = from[flat];
      }
    }
  }
  return converted;
}

void Tensor::clear_padding() {
  const int64_t rest = shape_.batch() % kSlabWidth;
  if (order_ == Order::RowMajor || rest == 0) return;
  float* slab = mutable_data(order_) + (storage_size() - kSlabWidth * shape_.features());
  for (int64_t feature = 0; feature < shape_.features(); ++feature, slab += kSlabWidth) {
    std::fill(slab + rest, slab + kSlabWidth, 0.0f);
  }
}

Tensor Tensor::clone() const {
  if (!defined()) return {};
  Tensor copy = empty(shape_, order_);
  std::ranges::copy(storage(), copy.mutable_storage().begin());
  return copy;
}

Tensor Tensor::reshape(const Shape& shape) const {
  if (shape.numel() != numel()) {
    throw ShapeError(fmt::format("reshape: {} has {} elements, {} has {}", shape_.to_string(),
                                 numel(), shape.to_string(), shape.numel()));
  }
  Tensor view = to(Order::RowMajor);
  view.shape_ = shape;
  return view;
}

float Tensor::item() const {
  if (numel() != 1) {
    throw ShapeError("item() needs exactly one element, the shape is " + shape_.to_string());
  }
  return *data(order_);
}

std::vector<float> Tensor::to_vector() const {
  const Tensor rows = to(Order::RowMajor);
  const std::span<const float> values = rows.storage();
  return {values.begin(), values.end()};
}

IndexTensor::IndexTensor(const Shape& shape, std::vector<int64_t> values) : shape_(shape) {
  if (static_cast<int64_t>(values.size()) != shape.numel()) {
    throw ShapeError(fmt::format("an index tensor of shape {} needs {} values, found {}",
                                 shape.to_string(), shape.numel(), values.size()));
  }
  values_ = std::make_shared<const std::vector<int64_t>>(std::move(values));
}

std::span<const int64_t> IndexTensor::values() const {
  if (!defined()) throw StateError("the values of an undefined index tensor were asked for");
  return *values_;
}

}  // namespace lacuna
