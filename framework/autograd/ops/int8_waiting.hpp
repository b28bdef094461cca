// Int8 products that are not computed yet, which what follows them joins.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "lacuna/framework/autograd/variable.h"
#include "lacuna/framework/core/array.h"
#include "lacuna/framework/kernels/int8/int8.hpp"

namespace lacuna {

/// How activations lie as bytes: of many examples in slabs, of few as they come.
enum class Int8Order {
  Slabs,   ///< int8.hpp
  Rows,    ///< int8_rows.hpp
  Images,  ///< int8_convolution.hpp
  Pixels,  ///< int8_pixels.hpp
};

/// The like of it for floats.
Order order_of_floats(Int8Order order);

/// Activations as bytes, in the order of who reads them.
struct Int8Values {
  Array<uint8_t> bytes;
  Int8Grid grid = {};                ///< of all examples, where these have none of their own
  Array<float> example_scales = {};  ///< by example, padded to slabs; or empty
  Array<int32_t> example_zeros = {};
};
using Int8ValuesPtr = std::shared_ptr<const Int8Values>;

/// A product in int8 that waits until its value is needed, or its bytes. An activation behind it
/// comes first, then a sum with a residual, then a ReLU.
class WaitingInt8 : public DeferredValue {
 public:
  /// The value in float32. The bytes and the floats of a sum are computed together: the next layer
  /// reads the ones, and its residual the others.
  Variable compute() final;
  /// The value in bytes of this grid; kept for others that want the same.
  Int8ValuesPtr bytes(const Int8Grid& grid);

  const Shape& shape() const { return shape_; }
  Int8Order order() const { return order_; }  ///< of the bytes; floats are in the like of it
  bool takes_activation(Int8Activation activation) const;
  bool takes_sum() const { return !residual_.defined() && !rectifies_sum_; }
  /// *Requires* that it takes them.
  std::shared_ptr<WaitingInt8> with(Int8Activation activation) const;
  std::shared_ptr<WaitingInt8> with(const Tensor& residual) const;

 protected:
  WaitingInt8(Int8ValuesPtr input, const Shape& shape, Int8Order order,
              const std::vector<float>& scales, const std::vector<float>& bias);

  const Int8ValuesPtr& input() const { return input_; }

 private:
  virtual std::shared_ptr<WaitingInt8> copy() const = 0;
  virtual void run(const Int8Epilogue& epilogue) const = 0;
  virtual int64_t byte_count() const = 0;
  Int8Epilogue epilogue() const;

  Int8ValuesPtr input_;
  Shape shape_;
  Int8Order order_;
  std::vector<float> scales_;  // by row, times the input's where it has one
  const std::vector<float>* bias_;
  Int8Activation activation_ = Int8Activation::None;
  Tensor residual_;  // in the order of floats
  bool rectifies_sum_ = false;
  Tensor value_;  // where it was computed with the bytes
  Int8ValuesPtr bytes_;
};

/// What x will be computed from, if that is an int8 product; else null.
WaitingInt8* waiting_int8(const Variable& x);
/// The bytes of x on a grid, if it is an int8 product that still waits, in that order; else null.
Int8ValuesPtr waiting_bytes(const Variable& x, const std::optional<Int8Grid>& grid,
                            Int8Order order);

/// The activation of x, where x is an int8 product that still waits; it waits on.
std::optional<Variable> int8_activation(const Variable& x, Int8Activation activation);
/// The sum, where one of them is an int8 product that waits, and the other has its shape.
std::optional<Variable> int8_sum(const Variable& a, const Variable& b);

}  // namespace lacuna
