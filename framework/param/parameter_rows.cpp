// What a parameter does by rows: gradients of the rows of a table that a batch uses, and its values
// row by row.
#include <fmt/core.h>

#include <algorithm>
#include <iterator>
#include <utility>

#include "lacuna/framework/core/error.h"
#include "lacuna/framework/core/shards.h"
#include "lacuna/framework/param/gradient_collector.h"
#include "lacuna/framework/param/parameter.h"
#include "lacuna/framework/param/row_gradient.h"

namespace lacuna {

// A compressed parameter's elements, ascending by flat index, and their positions.
struct ElementsByRow {
  PatternPtr pattern;
  Positions positions;
  Tensor elements;
  uint64_t version = 0;  // of the values
};

namespace {

// Makes what is outside the pattern's mask zero in these rows.
void prune_rows(const Pattern& pattern, std::span<const int64_t> rows, std::span<float> values) {
  if (pattern.is_dense() || rows.empty()) return;
  const BitMask* mask = pattern.index() == nullptr ? nullptr : pattern.index()->mask();
  const BitMask made = mask == nullptr ? pattern.mask() : BitMask();
  const BitMask& bits = mask == nullptr ? made : *mask;
  const int64_t columns = matrix_columns(pattern.shape());
  float* value = values.data();
  for (const int64_t row : rows) {
    for (int64_t c = 0; c < columns; ++c, ++value) {
      if (!bits.test(row * columns + c)) *value = 0.0f;
    }
  }
}

// A gradient by rows as an array aligned to a compressed pattern of these positions.
Tensor aligned_to(const Pattern& pattern, const Positions& positions, const RowGradient& gradient) {
  Tensor elements = Tensor::zeros(Shape{positions.count()});
  float* const into = elements.mutable_data();
  const float* row_values = gradient.values.data();
  for (const int64_t row : gradient.rows) {
    float* element = into + positions.row_begin()[static_cast<size_t>(row)];
    for (const uint32_t column : positions.row(row)) *element++ = row_values[column];
    row_values += positions.columns();
  }
  Tensor stored = Tensor::empty(pattern.stored_shape());
  pattern.layout().expand(pattern, elements.storage(), stored.mutable_storage());
  return stored;
}

}  // namespace

RowGradient* Parameter::mutable_row_gradient() {
  if (row_gradient_ != nullptr) gradient_ = Tensor();
  return row_gradient_.get();
}

// Whether what is added by rows is kept so now.
bool Parameter::keeps_rows() const {
  return sparse_gradient && !is_tied && pattern_->stores_every_position() &&
         (!has_gradient_ || row_gradient_ != nullptr);
}

// From now on all rows are kept, because something else is to be added to them.
void Parameter::give_up_rows() {
  if (row_gradient_ == nullptr) return;
  gradient();
  row_gradient_.reset();
}

// A gradient by rows as an array aligned to the pattern.
Tensor Parameter::aligned_rows(const RowGradient& gradient) const {
  if (!pattern_->stores_every_position()) {
    return aligned_to(*pattern_, elements_by_row().positions, gradient);
  }
  Tensor all = gradient.to_dense(shape());
  pattern_->layout().prune(*pattern_, all.mutable_storage());
  return all;
}

void Parameter::accumulate_rows(std::span<const int64_t> rows, const Computation& compute) {
  const Shape part_shape{static_cast<int64_t>(rows.size()), matrix_columns(shape())};
  const bool takes = tap_ != nullptr && tap_->route() == GradientRoute::TapOnly;
  const bool is_shard = collector_ != nullptr && current_shard() >= 0;
  std::vector<int64_t> list(rows.begin(), rows.end());
  if (keeps_rows() && tap_ == nullptr && !is_shard) {
    const bool is_first = row_gradient_ == nullptr;
    if (is_first) row_gradient_ = std::make_shared<RowGradient>();
    gradient_ = Tensor();
    Tensor part = is_first ? Tensor::empty(part_shape) : row_gradient_->gathered(rows);
    compute(part.mutable_storage(), is_first ? Accumulate::No : Accumulate::Yes);
    prune_rows(*pattern_, rows, part.mutable_storage());
    row_gradient_->put(std::move(list), std::move(part));
    has_gradient_ = true;
    return;
  }
  Tensor part = Tensor::empty(part_shape);
  compute(part.mutable_storage(), Accumulate::No);
  if (tap_ != nullptr) {
    tap_->observe(RowGradient{list, part}.to_dense(shape()));
    if (takes) return;
  }
  RowGradient gradient{std::move(list), std::move(part)};
  if (!keeps_rows()) {
    Tensor aligned = aligned_rows(gradient);
    if (is_shard) return collector_->add(*this, current_shard(), std::move(aligned));
    return add_gradient(aligned);
  }
  prune_rows(*pattern_, rows, gradient.values.mutable_storage());
  if (is_shard) return collector_->add_rows(*this, current_shard(), std::move(gradient));
  add_row_gradient(std::move(gradient));
}

void Parameter::add_row_gradient(RowGradient gradient) {
  if (!keeps_rows()) return add_gradient(aligned_rows(gradient));
  gradient_ = Tensor();
  has_gradient_ = true;
  if (row_gradient_ == nullptr) {
    row_gradient_ = std::make_shared<RowGradient>(std::move(gradient));
    return;
  }
  JoinRowGradients()(*row_gradient_, std::move(gradient));
}

// Positions are looked up again when the pattern has changed, elements when the values have.
const ElementsByRow& Parameter::elements_by_row() const {
  if (elements_by_row_ == nullptr) elements_by_row_ = std::make_shared<ElementsByRow>();
  ElementsByRow& by_row = *elements_by_row_;
  if (by_row.pattern != pattern_) {
    by_row = {};
    by_row.positions = pattern_->positions();
    by_row.pattern = pattern_;
  }
  if (!by_row.elements.defined() || by_row.version != *version_) {
    by_row.elements = compacted(values());
    by_row.version = *version_;
  }
  return by_row;
}

int64_t Parameter::bytes_by_row() const {
  if (elements_by_row_ == nullptr) return 0;
  const Positions& positions = elements_by_row_->positions;
  return elements_by_row_->elements.bytes() +
         static_cast<int64_t>(positions.column().size_bytes() + positions.row_begin().size_bytes());
}

void Parameter::read_rows(std::span<const int64_t> rows, std::span<float> into) const {
  require_rows(shape(), rows, into.size(), "parameter '" + name_ + "'");
  const int64_t columns = matrix_columns(shape());
  if (!pattern_->stores_every_position()) {
    const ElementsByRow& by_row = elements_by_row();
    const std::span<const int64_t> begin = by_row.positions.row_begin();
    std::ranges::fill(into, 0.0f);
    for (size_t r = 0; r < rows.size(); ++r) {
      const float* element = by_row.elements.data() + begin[static_cast<size_t>(rows[r])];
      float* const row = into.data() + static_cast<int64_t>(r) * columns;
      for (const uint32_t column : by_row.positions.row(rows[r])) row[column] = *element++;
    }
    return;
  }
  const bool is_drawn = values_.defined() || !pattern_->is_dense();
  const float* const stored = is_drawn ? values().data() : nullptr;
  const CounterRng rng(seed_, name_);
  for (size_t r = 0; r < rows.size(); ++r) {
    float* const row = into.data() + static_cast<int64_t>(r) * columns;
    const int64_t first = rows[r] * columns;
    if (is_drawn) {
      std::copy_n(stored + first, columns, row);
    } else {
      for (int64_t c = 0; c < columns; ++c) row[c] = initializer_.value(rng, first + c);
    }
  }
}

}  // namespace lacuna
