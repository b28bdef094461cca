// Parameter: a trained array with its gradient and optimizer states, all aligned to one Pattern.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>

#include "lacuna/framework/config/state_dict.h"
#include "lacuna/framework/core/convolution_shape.h"
#include "lacuna/framework/core/tensor.h"
#include "lacuna/framework/layouts/pattern.h"
#include "lacuna/framework/param/gradient_sink.h"
#include "lacuna/framework/param/gradient_tap.h"
#include "lacuna/framework/param/initializer.h"

namespace lacuna {

class GradientCollector;
class Parameter;
struct ElementsByRow;
struct RowGradient;
using ParameterPtr = std::shared_ptr<Parameter>;

/// The storage of an optimizer's state for one parameter. A dense slot keeps every position for any
/// pattern (a state that requires it, a shadow weight).
struct Slot {
  Tensor values;
  bool requires_dense = false;
};

/// The operations that use a parameter, which determine the layouts on which its products run:
/// Linear, only linear(), on every layout; Convolution, only conv2d() or conv1d(), on dense, masked
/// and csr. Others need a layout that stores every position.
enum class WeightUse { Other, Linear, Convolution, Embedding };

/// Bytes that a parameter's arrays take in memory.
struct ParameterBytes {
  int64_t values = 0;
  int64_t derived = 0;  ///< copies of the values that the layout or `read_rows` keeps
  int64_t gradient = 0;
  int64_t states = 0;  ///< the optimizer's
  int64_t index = 0;   ///< of the nonzeros' positions
  int64_t total() const { return values + derived + gradient + states + index; }
};

/// A trained array. Values, gradient and slots have `pattern()->stored_size()` elements each; for
/// dense and masked patterns they have the logical shape. The pattern is changed by `set_pattern`,
/// which moves them all, or by `replace`.
///
/// The first values are those that the initializer draws for the parameter's first pattern that is
/// not dense, if that is set before the values change; reading them changes nothing.
class Parameter final : public GradientSink {
 public:
  /// A dense parameter whose values are drawn when they are first needed. By then it has its full
  /// name, which is part of the generator's key.
  Parameter(const Shape& shape, const Initializer& initializer);
  Parameter(const Parameter&) = delete;  // it would share the arrays
  Parameter& operator=(const Parameter&) = delete;

  /// Keeps the parameter dense: sparsity algorithms skip it.
  bool requires_dense = false;
  /// Keeps gradients of `accumulate_rows` as a RowGradient, so that the cost of a step depends only
  /// on the rows that a batch uses. Set by the layer that owns it.
  bool sparse_gradient = false;
  /// Whether another layer uses it too (nn/tied_weight.h). Set by that layer. The default filter of
  /// sparsity algorithms skips it.
  bool is_tied = false;
  /// The operations that use the parameter; set by the layer that owns it.
  WeightUse use = WeightUse::Other;
  /// For a convolution's weight: the sizes of its images, if the layer that owns it knows them, for
  /// the choice of a layout. The batch is ignored.
  std::optional<ConvolutionShape> convolution;
  /// Whether it is trained. If not (if it is *frozen*), no gradient is computed for it, optimizers
  /// skip it (no step, no weight decay, no states), and so do sparsity algorithms: it keeps its
  /// values and its pattern. It is saved and loaded like any other. Set this before a sparsity
  /// algorithm manages the parameter.
  bool trainable = true;
  /// Type of the sparsity algorithm that manages it; empty if there is none.
  std::string sparsified_by;

  /// Whether its products run on every layout: a linear layer's weight, and a table that one is
  /// tied to.
  bool is_linear_weight() const {
    return use == WeightUse::Linear || (use == WeightUse::Embedding && is_tied);
  }

  /// Full dotted name in its model, as in "encoder.fc1.weight".
  const std::string& name() const { return name_; }
  void set_name(std::string name) { name_ = std::move(name); }
  const Shape& shape() const { return pattern_->shape(); }
  int64_t numel() const { return shape().numel(); }

  /// Drops the values: they are drawn again with this seed when next needed.
  void initialize(uint64_t seed);

  /// Values of rows of the logical shape, one row after the other. Values that have not been drawn
  /// yet are computed, but not stored. *Errors:* ShapeError if a row is out of range, or `into` has
  /// another size. *Cost:* O(elements). If not every position is stored, a copy in row order is
  /// kept: O(stored) after each change, and 8 bytes per element.
  void read_rows(std::span<const int64_t> rows, std::span<float> into) const;

  /// The values, aligned to the pattern. The non-const form counts as a change of the values: call
  /// it again for each change.
  const Tensor& values() const;
  Tensor& mutable_values();
  /// Differs from what it was before any change of the values or the pattern.
  uint64_t version() const { return *version_; }
  /// The values in the logical shape. *Cost:* O(numel): for saving and inspection only.
  Tensor to_dense() const;
  /// Copies the values at the pattern's positions from a row-major array of the logical shape.
  /// *Errors:* ShapeError on another shape.
  void assign(const Tensor& dense);
  /// Copies the values of the pattern's elements, ascending by flat index, as `compacted` returns
  /// them. *Errors:* ShapeError. *Cost:* O(stored).
  void assign_elements(const Tensor& elements);

  const PatternPtr& pattern() const { return pattern_; }
  /// Moves values, gradient and slots to a new pattern of the same shape. A position in both
  /// patterns keeps its elements; a position only in the new pattern starts at zero. First values
  /// that nothing has changed are drawn for the new pattern instead. *Errors:* ShapeError. *Cost:*
  /// O(stored) for each array.
  void set_pattern(PatternPtr pattern);
  /// Moves to a new pattern by a given move between the two, both compressed.
  void set_pattern(PatternPtr pattern, const PatternMove& move);
  /// Sets a pattern and its values together, and drops the gradient or replaces it by the given
  /// one: for values from elsewhere, where only the slots that are aligned to the pattern must be
  /// moved. The tensors are shared, not copied. *Errors:* ShapeError.
  void replace(PatternPtr pattern, Tensor values, Tensor gradient = Tensor());
  /// Converts an array aligned to the pattern to the pattern's elements, ascending by flat index
  /// (the form of saved arrays), and back. *Errors:* ShapeError. *Cost:* O(stored).
  Tensor compacted(const Tensor& stored) const;
  Tensor expanded(const Tensor& elements) const;
  /// Sets everything stored outside the pattern to zero. *Cost:* O(stored) for each array; nothing
  /// while `is_pruned()`.
  void prune();
  /// Whether it is certain that nothing is stored outside the pattern: no array has been returned
  /// for change since the last `prune()`.
  bool is_pruned() const { return pruned_; }
  /// States that changes since then kept zeros at zero, as an optimizer knows of its own update.
  /// *Requires* this to be true.
  void mark_pruned() { pruned_ = true; }
  /// The mask as 0 and 1 in the logical shape (all 1 when dense). *Cost:* O(numel).
  ByteArray mask() const;

  bool has_gradient() const { return has_gradient_; }
  /// For a gradient by rows, all rows; the first call *costs* O(numel), and the non-const form
  /// discards the form by rows. *Errors:* StateError without a gradient.
  const Tensor& gradient() const;
  Tensor& mutable_gradient();
  /// The gradient if it is kept by rows, else null. The non-const form counts as a change of it.
  const RowGradient* row_gradient() const { return row_gradient_.get(); }
  RowGradient* mutable_row_gradient();
  /// Drops the gradient; its memory is kept for the next one.
  void zero_gradient();
  void accumulate(const Tensor& gradient) override;
  void accumulate_product(const Tensor& dy, const Tensor& x) override;
  /// As `accumulate_product`; a tap receives the whole gradient.
  void accumulate_convolution(const ConvolutionShape& shape, const Tensor& dy,
                              const Tensor& x) override;
  /// The gradient of a dense pattern is computed in place, unless a tap needs it.
  void accumulate_computed(const Computation& compute) override;
  /// Adds a gradient that is zero outside these rows of the logical shape, which must ascend:
  /// `compute` receives the rows, one after the other. *Cost:* with `sparse_gradient` that of the
  /// rows used so far, unless a tap needs the whole gradient or there are other gradients already;
  /// else O(stored).
  void accumulate_rows(std::span<const int64_t> rows, const Computation& compute);

  /// From now on the tap receives every gradient in full before the pattern selects from it: for a
  /// flat pattern the gradient itself, at the cost of the dense product; for a compressed pattern
  /// the product's factors. Null removes the tap.
  void set_gradient_tap(std::shared_ptr<GradientTap> tap) { tap_ = std::move(tap); }

  /// From now on, gradients of a shard (core/shards.h) go to the collector, which adds the sum over
  /// all shards by `add_gradient`. Null removes it. If only a tap receives gradients, the tap
  /// handles the shards.
  void set_collector(std::shared_ptr<GradientCollector> collector) {
    collector_ = std::move(collector);
  }
  const std::shared_ptr<GradientCollector>& collector() const { return collector_; }
  /// Adds an array aligned to the pattern to the gradient; shares it if there is none yet.
  /// *Errors:* ShapeError.
  void add_gradient(const Tensor& aligned);
  void add_row_gradient(RowGradient gradient);

  /// This parameter as a weight for the linear op. Gradients go to `sink`.
  WeightReference as_weight(std::shared_ptr<GradientSink> sink) const;

  /// An optimizer's state, initialized with zeros when first requested.
  Tensor& slot(const std::string& name);
  Slot& dense_slot(const std::string& name);
  const std::map<std::string, Slot>& slots() const { return slots_; }
  std::map<std::string, Slot>& slots() {
    pruned_ = false;
    return slots_;
  }

  /// The memory that it uses now; arrays that have not been needed yet take none.
  ParameterBytes byte_counts() const;
  int64_t bytes() const { return byte_counts().total(); }

 private:
  template <class Move>
  void move_to(PatternPtr pattern, const Move& move);
  Shape stored_shape() const;
  Tensor& gradient_buffer();
  void contribute(const Computation& compute);
  bool keeps_rows() const;
  void give_up_rows();
  Tensor aligned_rows(const RowGradient& gradient) const;
  const ElementsByRow& elements_by_row() const;
  int64_t bytes_by_row() const;
  void materialize() const;
  void draw() const;

  std::string name_;
  PatternPtr pattern_;
  Initializer initializer_;
  uint64_t seed_ = 0;
  mutable Tensor values_;    // drawn on first use
  bool is_as_drawn_ = true;  // the values are the first ones, whether drawn yet or not
  // Of the values; references to the weight see it, too.
  std::shared_ptr<uint64_t> version_ = std::make_shared<uint64_t>(1);
  std::shared_ptr<DerivedValues> derived_ = std::make_shared<DerivedValues>();
  mutable Tensor gradient_;  // by rows: all rows, once they are requested
  bool has_gradient_ = false;
  std::shared_ptr<RowGradient> row_gradient_;               // null: not by rows
  mutable std::shared_ptr<ElementsByRow> elements_by_row_;  // null: no rows were requested
  bool pruned_ = false;
  std::shared_ptr<GradientTap> tap_;
  std::shared_ptr<GradientCollector> collector_;
  std::map<std::string, Slot> slots_;
};

}  // namespace lacuna
