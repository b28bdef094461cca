// Layout: how a weight's values are stored, and how a linear layer's three products run on them.
// The open interface through which dense, masked and csr are built, and layouts of users too.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string_view>

#include "lacuna/framework/config/pattern_shape.h"
#include "lacuna/framework/core/accumulate.h"
#include "lacuna/framework/core/convolution_shape.h"
#include "lacuna/framework/core/tensor.h"
#include "lacuna/framework/layouts/positions.h"

namespace lacuna {

class Pattern;
struct ChannelStatistics;

/// A layout's index of one pattern, such as a mask or index arrays. Immutable.
class PatternIndex {
 public:
  virtual ~PatternIndex() = default;
  virtual int64_t bytes() const = 0;
  /// The positions as bits, if they are stored so; else null.
  virtual const BitMask* mask() const { return nullptr; }
};

/// Data computed from a weight's values, such as a transposed copy, and the version of the values.
/// It belongs to the weight; the layout that made it refreshes it.
struct DerivedValues {
  Tensor array;
  uint64_t version = 0;
  int form = 0;  ///< identifies the form, if the layout derives several
};

/// A weight as the products see it.
struct WeightView {
  const Pattern& pattern;
  std::span<const float> values;     ///< aligned to the pattern
  uint64_t version = 0;              ///< changes whenever the values change
  DerivedValues* derived = nullptr;  ///< null: nothing is kept between products
};

/// The `size` floats that `fill(into)` derives from the weight's values: those kept by the weight,
/// refilled if they are of another version or form, or `own` if the weight keeps none.
template <class Fill>
std::span<const float> refreshed(const WeightView& weight, int64_t size, DerivedValues& own,
                                 Fill&& fill, int form = 0) {
  DerivedValues& copy = weight.derived == nullptr ? own : *weight.derived;
  if (!copy.array.defined() || copy.version != weight.version || copy.form != form) {
    if (!copy.array.defined() || copy.array.numel() != size) {
      copy.array = Tensor::empty(Shape{size});
    }
    fill(copy.array.mutable_data());
    copy.version = weight.version;
    copy.form = form;
  }
  return copy.array.storage();
}

/// The half of a layout that determines the places of a pattern's values. Arrays aligned to a
/// pattern (values, gradient, optimizer states) are `stored_size` long.
class StorageFormat {
 public:
  virtual ~StorageFormat() = default;

  /// The index that this layout derives from a set of positions; Pattern::index_as returns it.
  /// *Errors:* ShapeError if the layout cannot store them.
  virtual std::shared_ptr<const PatternIndex> make_index(const Shape& shape,
                                                         const Positions& positions) const = 0;
  /// The index of the positions whose bits are set. By default converted to Positions first.
  virtual std::shared_ptr<const PatternIndex> make_index_of_mask(const Shape& shape,
                                                                 const BitMask& mask) const;
  /// The positions of a pattern. *Cost:* O(nnz).
  virtual Positions positions(const Pattern& pattern) const = 0;
  virtual int64_t stored_size(const Pattern& pattern) const = 0;

  /// Converts an array aligned to the pattern to one that holds only the pattern's elements,
  /// ascending by flat index (nnz long), and back. In this form, arrays move between layouts and
  /// patterns, and are saved. Storage outside the pattern becomes zero. Floats are copied, never
  /// computed with: they may contain any bits.
  virtual void compact(const Pattern& pattern, std::span<const float> stored,
                       std::span<float> elements) const = 0;
  virtual void expand(const Pattern& pattern, std::span<const float> elements,
                      std::span<float> stored) const = 0;

  /// The values in the logical shape, zero outside the pattern. *Cost:* O(numel).
  virtual Tensor to_dense(const Pattern& pattern, std::span<const float> values) const;
  /// The pattern's elements of an array in the logical shape, row-major; others are dropped.
  virtual void from_dense(const Pattern& pattern, std::span<const float> dense,
                          std::span<float> values) const;
  /// Sets stored elements outside the pattern to zero (layouts that store none do nothing).
  virtual void prune(const Pattern& /*pattern*/, std::span<float> /*values*/) const {}
};

/// The half of a layout that computes. Weights are [out, in]; inputs and output gradients have any
/// number of leading (batch) dimensions and either storage order.
class LinearProducts {
 public:
  virtual ~LinearProducts() = default;

  /// The storage order in which the products of `batch` examples run; `features` is the larger side
  /// of the weight. They accept either order; a caller that runs several products on a tensor
  /// converts it once.
  virtual Order order(int64_t /*batch*/, int64_t /*features*/) const { return Order::RowMajor; }

  /// Y = X Wᵀ + bias. *Shapes:* x [..., in], bias [out] or undefined → [..., out].
  virtual Tensor forward(const WeightView& weight, const Tensor& x, const Tensor& bias) const = 0;
  /// dX = dY W. *Shapes:* dy [..., out] → [..., in].
  virtual Tensor input_gradient(const WeightView& weight, const Tensor& dy) const = 0;
  /// dW = dYᵀ X at the stored positions; positions outside the pattern that have storage get zero.
  virtual void weight_gradient(const Pattern& pattern, const Tensor& dy, const Tensor& x,
                               Accumulate accumulate, std::span<float> gradient) const = 0;
};

/// The products of a convolution with a weight [out, in / groups, kernel] and images [batch,
/// channels, height, width] in any storage order.
class ConvolutionProducts {
 public:
  virtual ~ConvolutionProducts() = default;

  /// The storage order of images in which the products run, as `LinearProducts::order`.
  virtual Order order(const ConvolutionShape& shape) const = 0;
  /// y = w ∗ x + bias. `statistics` receives the moments of y's channels if the product computes
  /// them; otherwise it does not change. *Shapes:* bias [out] or undefined.
  virtual Tensor forward(const WeightView& weight, const ConvolutionShape& shape, const Tensor& x,
                         const Tensor& bias, ChannelStatistics* statistics = nullptr) const = 0;
  virtual Tensor input_gradient(const WeightView& weight, const ConvolutionShape& shape,
                                const Tensor& dy) const = 0;
  /// The gradient at the stored positions; positions outside the pattern that have storage get
  /// zero.
  virtual void weight_gradient(const Pattern& pattern, const ConvolutionShape& shape,
                               const Tensor& dy, const Tensor& x, Accumulate accumulate,
                               std::span<float> gradient) const = 0;
};

/// One object per layout, stateless, alive for the whole program.
class Layout : public StorageFormat, public LinearProducts {
 public:
  /// The products of such a convolution. By default they use a dense copy of the weight.
  virtual const ConvolutionProducts& convolutions(const ConvolutionShape& shape) const;
  virtual std::string_view name() const = 0;
  /// The positions that can exist together; any by default.
  virtual PatternShape pattern_shape() const { return {}; }
};

/// Every position is stored and trained.
const Layout& dense_layout();
/// Every position is stored; those outside a bit mask are zero. The reference for the compressed
/// layouts.
const Layout& masked_layout();
/// Only nonzeros are stored, as a stream (kernels/csr/csr.hpp); time and memory depend on them.
const Layout& csr_layout();
/// The layout for a pattern, named by its text: "nm 2:4", "block 16x16"; csr if it is unstructured.
/// One object for each text, which exists until the program ends. The pattern's norm is ignored.
const Layout& layout_for(const PatternShape& pattern);

}  // namespace lacuna
