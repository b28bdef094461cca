// Tensor: float32 values with a shape and a storage order. IndexTensor: 64-bit integers.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "lacuna/framework/core/buffer.h"
#include "lacuna/framework/core/shape.h"

namespace lacuna {

/// How a tensor's elements lie in memory. The logical shape is the same in all of them.
enum class Order {
  RowMajor,    ///< the last dimension is contiguous
  BatchSlabs,  ///< [batch/64][features][64]: all leading dimensions are the batch; the last slab is
               ///< padded with zeros to 64
  ImageSlabs,  ///< images for sparse convolutions: slabs of 16 examples, their borders zero
  ChannelBlocks,  ///< images for dense convolutions: blocks of 16 channels
};
const char* to_string(Order order);
/// Whether only images have it: [batch, channels, height, width], or [batch, channels, length].
inline bool is_of_images(Order order) {
  return order == Order::ImageSlabs || order == Order::ChannelBlocks;
}

/// Examples in one batch slab: 64 floats are four AVX-512 vectors, 256 bytes per feature row.
inline constexpr int64_t kSlabWidth = 64;

/// A contiguous float32 array. Copies share the storage; `clone()` copies it.
class Tensor {
 public:
  /// An undefined tensor, which stands for "none".
  Tensor() = default;

  /// Which padding is set to zero: all, or all except the lines between the rows of image slabs,
  /// for code that writes these together with the rows. Writing such a line separately costs the
  /// fetch of a cache line.
  enum class Padding { Zero, ZeroButBetweenRows };
  /// The contents are unspecified, except the padding. *Errors:* ShapeError if the order is one of
  /// images and the shape is not; BufferError if there is no memory, here and wherever a tensor is
  /// made.
  static Tensor empty(const Shape& shape, Order order = Order::RowMajor,
                      Padding padding = Padding::Zero);
  static Tensor zeros(const Shape& shape, Order order = Order::RowMajor);
  static Tensor full(const Shape& shape, float value);
  static Tensor scalar(float value);
  /// Row-major copy of `values`. *Errors:* ShapeError when their number is not shape.numel().
  static Tensor from(const Shape& shape, std::span<const float> values);

  bool defined() const { return buffer_ != nullptr; }
  const Shape& shape() const { return shape_; }
  int64_t numel() const { return shape_.numel(); }
  Order order() const { return order_; }

  /// The elements, in an order that the caller names. *Errors:* StateError when the tensor is
  /// undefined or in another order (convert with `to`).
  const float* data(Order order = Order::RowMajor) const;
  float* mutable_data(Order order = Order::RowMajor);

  /// All stored elements in their storage order, including padding: for elementwise work.
  std::span<const float> storage() const;
  std::span<float> mutable_storage();
  int64_t storage_size() const;
  int64_t bytes() const { return storage_size() * static_cast<int64_t>(sizeof(float)); }

  /// This tensor if it is already in `order`, else a converted copy.
  Tensor to(Order order) const;
  /// Sets the padding of the last slab to zero, and for image slabs their borders; does nothing if
  /// there is none. The elements do not change.
  void clear_padding(Padding padding = Padding::Zero);
  Tensor clone() const;
  /// These elements, in row-major order (converted first where needed), under another shape.
  /// *Errors:* ShapeError when the number of elements differs.
  Tensor reshape(const Shape& shape) const;
  /// These elements, without a copy and in their order, under another shape: in row-major order any
  /// shape with as many elements; in an order of images the same images with or without a height of
  /// 1. *Errors:* ShapeError with both shapes.
  Tensor viewed_as(const Shape& shape) const;
  /// The only element. *Errors:* ShapeError when there is not exactly one.
  float item() const;
  /// Row-major copy of the elements.
  std::vector<float> to_vector() const;
  /// True when no other Tensor shares the storage, so that it may be written in place.
  bool unique() const { return buffer_.use_count() == 1; }
  bool shares_storage_with(const Tensor& other) const { return buffer_ == other.buffer_; }

 private:
  void require_order(Order order) const;

  Shape shape_;
  Order order_ = Order::RowMajor;
  std::shared_ptr<Buffer> buffer_;
};

/// A contiguous array of 64-bit integers: class labels, indices. Copies share the storage.
class IndexTensor {
 public:
  IndexTensor() = default;
  /// *Errors:* ShapeError when the number of values is not shape.numel().
  IndexTensor(const Shape& shape, std::vector<int64_t> values);

  bool defined() const { return values_ != nullptr; }
  const Shape& shape() const { return shape_; }
  int64_t numel() const { return shape_.numel(); }
  /// *Errors:* StateError when undefined.
  std::span<const int64_t> values() const;

 private:
  Shape shape_;
  std::shared_ptr<const std::vector<int64_t>> values_;
};

}  // namespace lacuna
