#include "lacuna/framework/core/tensor.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <string>
#include <utility>

#include "lacuna/framework/core/error.h"
#include "lacuna/framework/core/image_slabs.hpp"

namespace lacuna {
namespace {

// About as many as stored_elements: padding may take a size beyond 64 bits whose shape is within.
double approximate_elements(const Shape& shape, Order order) {
  const auto real = [](int64_t size) { return static_cast<double>(size); };
  const auto padded = [&](int64_t size, int64_t unit) {
    return std::ceil(real(size) / real(unit)) * real(unit);
  };
  if (order == Order::RowMajor) return real(shape.numel());
  if (order == Order::BatchSlabs) {
    return padded(shape.batch(), kSlabWidth) * real(shape.features());
  }
  const Shape images = image_shape(shape);
  const double height = real(images[2]), width = real(images[3]);
  if (order == Order::ChannelBlocks) {
    return real(images[0]) * padded(images[1], kChannelBlock) * height * width;
  }
  const double plane = (height + 1) * (width + 1) + 1, lead = width + 2;
  return padded(images[0], kImageSlabWidth) * (2 * lead + real(images[1]) * plane);
}

// *Errors:* BufferError where it is more than there can be memory for.
int64_t stored_elements(const Shape& shape, Order order) {
  constexpr double kMost = 0x1p58;  // floats, of 2^60 bytes
  if (approximate_elements(shape, order) > kMost) throw BufferError(SIZE_MAX);
  switch (order) {
    case Order::RowMajor:
      return shape.numel();
    case Order::BatchSlabs:
      return (shape.batch() + kSlabWidth - 1) / kSlabWidth * kSlabWidth * shape.features();
    case Order::ImageSlabs:
      return ImageSlabs(shape).size();
    case Order::ChannelBlocks:
      return ChannelBlocks(shape).size();
  }
  throw StateError("unknown storage order");
}

// Where the element of a flat index is stored.
int64_t place_of(const Shape& shape, Order order, int64_t flat) {
  if (order == Order::RowMajor) return flat;
  if (order == Order::BatchSlabs) {
    const int64_t features = shape.features(), row = flat / features;
    return (row / kSlabWidth * features + flat % features) * kSlabWidth + row % kSlabWidth;
  }
  const Shape images = image_shape(shape);
  const int64_t width = images[3], height = images[2], channels = images[1];
  const int64_t pixel = flat % (height * width), image = flat / (height * width);
  if (order == Order::ChannelBlocks) {
    return ChannelBlocks(shape).element(image / channels, image % channels, pixel);
  }
  return ImageSlabs(shape).pixel(image / channels, image % channels, pixel / width, pixel % width);
}

// Makes the lines between the planes of image slabs zero, and where asked those between the rows.
void clear_borders(const ImageSlabs& images, Tensor::Padding padding, float* data) {
  const auto clear = [&](int64_t line, int64_t lines) {
    std::fill_n(data + line * kImageSlabWidth, lines * kImageSlabWidth, 0.0f);
  };
  for (int64_t slab = 0; slab < images.slabs(); ++slab) {
    const int64_t first = slab * images.slab_lines(), planes = first + images.lead_lines();
    clear(first, images.lead_lines());
    for (int64_t channel = 0; channel < images.channels; ++channel) {
      const int64_t plane = planes + channel * images.plane_lines();
      for (int64_t row = 1; row < images.height && padding == Tensor::Padding::Zero; ++row) {
        clear(plane + row * images.row_lines() - 1, 1);
      }
      const int64_t pixels = images.height * images.row_lines() - 1;
      clear(plane + pixels, images.plane_lines() - pixels);
    }
    clear(planes + images.channels * images.plane_lines(), images.lead_lines());
  }
}

// Makes the examples that are none zero in all lines of the last slab of images.
void clear_missing_examples(const ImageSlabs& images, float* data) {
  const int64_t present = images.batch % kImageSlabWidth;
  if (present == 0) return;
  float* line = data + (images.slabs() - 1) * images.slab_lines() * kImageSlabWidth;
  for (int64_t i = 0; i < images.slab_lines(); ++i, line += kImageSlabWidth) {
    std::fill(line + present, line + kImageSlabWidth, 0.0f);
  }
}

void clear_missing_channels(const ChannelBlocks& images, float* data) {
  const int64_t present = images.channels % kChannelBlock;
  if (present == 0) return;
  for (int64_t example = 0; example < images.batch; ++example) {
    float* line = data + images.block(example, images.blocks() - 1, 0);
    for (int64_t i = 0; i < images.pixels; ++i, line += kChannelBlock) {
      std::fill(line + present, line + kChannelBlock, 0.0f);
    }
  }
}

}  // namespace

const char* to_string(Order order) {
  switch (order) {
    case Order::RowMajor:
      return "row-major";
    case Order::BatchSlabs:
      return "batch slabs";
    case Order::ImageSlabs:
      return "image slabs";
    case Order::ChannelBlocks:
      return "channel blocks";
  }
  return "an unknown order";
}

Tensor Tensor::empty(const Shape& shape, Order order, Padding padding) {
  Tensor tensor;
  tensor.shape_ = shape;
  tensor.order_ = order;
  const int64_t size = stored_elements(shape, order);
  const auto elements = static_cast<size_t>(size);
  if (elements > SIZE_MAX / sizeof(float)) throw BufferError(SIZE_MAX);
  tensor.buffer_ = std::make_shared<Buffer>(elements * sizeof(float));
  if (order == Order::BatchSlabs && shape.batch() % kSlabWidth != 0) {
    const int64_t last_slab = kSlabWidth * shape.features();
    std::fill_n(tensor.mutable_data(order) + (size - last_slab), last_slab, 0.0f);
  } else if (order == Order::ImageSlabs || order == Order::ChannelBlocks) {
    tensor.clear_padding(padding);
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
  if (!defined()) throw StateError("an undefined tensor has no data");
  if (order != order_) {
    throw StateError(std::string("a tensor of shape ") + shape_.to_string() + " is stored in " +
                     to_string(order_) + ", but its data was requested in " + to_string(order) +
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
  for (int64_t flat = 0; flat < shape_.numel(); ++flat) {
    into[place_of(shape_, order, flat)] = from[place_of(shape_, order_, flat)];
  }
  return converted;
}

void Tensor::clear_padding(Padding padding) {
  switch (order_) {
    case Order::RowMajor:
      return;
    case Order::ImageSlabs:
      clear_borders(ImageSlabs(shape_), padding, mutable_data(order_));
      return clear_missing_examples(ImageSlabs(shape_), mutable_data(order_));
    case Order::ChannelBlocks:
      return clear_missing_channels(ChannelBlocks(shape_), mutable_data(order_));
    case Order::BatchSlabs:
      break;
  }
  const int64_t rest = shape_.batch() % kSlabWidth;
  if (rest == 0) return;
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

Tensor Tensor::viewed_as(const Shape& shape) const {
  const auto lies_so = [&] {
    if (order_ == Order::RowMajor) return shape.numel() == numel();
    return shape == shape_ || (is_of_images(order_) && image_shape(shape) == image_shape(shape_));
  };
  if (!lies_so()) {
    throw ShapeError(fmt::format("a tensor of shape {} in {} cannot be viewed as shape {}",
                                 shape_.to_string(), to_string(order_), shape.to_string()));
  }
  Tensor view = *this;
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
  if (!defined()) throw StateError("an undefined index tensor has no values");
  return *values_;
}

}  // namespace lacuna
