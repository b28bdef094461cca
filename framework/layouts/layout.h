// Layout: how a weight's values lie in memory and how a linear layer's three products run on them.
// The open descriptor: dense, masked and csr are built through it, and a user's own is too.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string_view>

#include "lacuna/framework/core/tensor.h"
#include "lacuna/framework/layouts/positions.h"

namespace lacuna {

class Pattern;

/// Whether a product overwrites its target or adds to it.
enum class Accumulate { No, Yes };

/// What a layout knows of one pattern: a mask, index arrays. Immutable.
class PatternIndex {
 public:
  virtual ~PatternIndex() = default;
  virtual int64_t bytes() const = 0;
  /// The positions as bits, where they are kept so; else null.
  virtual const BitMask* mask() const { return nullptr; }
};

/// What a layout has computed from a weight's values, as a transposed copy, and from which version
/// of them. It belongs to the weight; the layout that made it refreshes it.
struct DerivedValues {
  Tensor array;
  uint64_t version = 0;
};

/// A weight as the products see it.
struct WeightView {
  const Pattern& pattern;
  std::span<const float> values;     ///< aligned to the pattern
  uint64_t version = 0;              ///< another one when the values have changed
  DerivedValues* derived = nullptr;  ///< null: nothing is kept between products
  /// Whether the pattern is used for one step alone, so that a layout should compute at once what
  /// it would otherwise build an index for.
  bool changes_every_step = false;
};

/// One object per layout, stateless, alive for the whole program. Weights are [out, in]; inputs and
/// output gradients have any number of leading (batch) dimensions and either storage order.
class Layout {
 public:
  virtual ~Layout() = default;

  virtual std::string_view name() const = 0;

  /// What this layout needs to know of a set of positions. *Errors:* ShapeError where the layout
  /// cannot store them.
  virtual std::shared_ptr<const PatternIndex> index(const Shape& shape,
                                                    const Positions& positions) const = 0;
  /// The same of the positions whose bit is set. By default by way of Positions.
  virtual std::shared_ptr<const PatternIndex> index_of_mask(const Shape& shape,
                                                            const BitMask& mask) const;
  /// The positions of a pattern. *Cost:* O(nnz).
  virtual Positions positions(const Pattern& pattern) const = 0;
  /// Length of the arrays (values, gradient, optimizer states) aligned to the pattern.
  virtual int64_t stored_size(const Pattern& pattern) const = 0;

  /// What rows and columns must be divisible by.
  virtual Shape granularity() const { return Shape{1, 1}; }
  /// Random positions that this layout can hold, about as dense as asked where it has the choice:
  /// for measuring it. *Requires* a shape that fits.
  virtual Positions sample(const Shape& shape, double density) const;

  /// The storage order in which the products of `batch` examples run, `features` being the larger
  /// side of the weight. They take either; who has several products to run on a tensor converts it
  /// once.
  virtual Order order(int64_t /*batch*/, int64_t /*features*/) const { return Order::RowMajor; }

  /// Y = X Wᵀ + bias. *Shapes:* x [..., in], bias [out] or undefined → [..., out].
  virtual Tensor forward(const WeightView& weight, const Tensor& x, const Tensor& bias) const = 0;
  /// dX = dY W. *Shapes:* dy [..., out] → [..., in].
  virtual Tensor input_gradient(const WeightView& weight, const Tensor& dy) const = 0;
  /// dW = dYᵀ X at the stored positions; positions outside the pattern that have storage get zero.
  virtual void weight_gradient(const Pattern& pattern, const Tensor& dy, const Tensor& x,
                               Accumulate accumulate, std::span<float> gradient) const = 0;

  /// Between an array aligned to the pattern and one that holds the pattern's elements alone,
  /// ascending by flat index (nnz long): the form in which arrays move from a layout or pattern to
  /// another, and are saved. Storage outside the pattern becomes zero.
  virtual void compact(const Pattern& pattern, std::span<const float> stored,
                       std::span<float> elements) const = 0;
  virtual void expand(const Pattern& pattern, std::span<const float> elements,
                      std::span<float> stored) const = 0;

  /// For each of the pattern's elements, ascending by flat index, its place in the arrays aligned
  /// to the pattern. By default found by `compact`.
  virtual void storage_places(const Pattern& pattern, std::span<uint32_t> places) const;

  /// The values in the logical shape, zero outside the pattern. *Cost:* O(numel).
  virtual Tensor to_dense(const Pattern& pattern, std::span<const float> values) const;
  /// The pattern's elements of an array in the logical shape, row-major; others are dropped.
  virtual void from_dense(const Pattern& pattern, std::span<const float> dense,
                          std::span<float> values) const;
  /// Makes stored elements outside the pattern zero (layouts that store none do nothing).
  virtual void prune(const Pattern& /*pattern*/, std::span<float> /*values*/) const {}
};

/// Every position is stored and trained.
const Layout& dense_layout();
/// Every position is stored; those outside a bit mask are zero. The reference for what the
/// compressed layouts compute.
const Layout& masked_layout();
/// Only the nonzeros are stored, as a stream (kernels/csr/csr.h): time and memory follow them.
const Layout& csr_layout();

}  // namespace lacuna
