#include "lacuna/framework/param/saved_slot.hpp"

namespace lacuna {

Tensor slot_to_saved(const Parameter& parameter, const Slot& slot) {
  const bool whole = slot.requires_dense || parameter.pattern()->stores_every_position();
  return whole ? slot.values.clone() : parameter.compacted(slot.values);
}

std::vector<Shape> shapes_of_saved_slot(const Parameter& parameter, bool requires_dense) {
  if (requires_dense) return {parameter.shape()};
  return {parameter.shape(), Shape{parameter.pattern()->nnz()}};
}

Tensor slot_from_saved(const Parameter& parameter, const Tensor& saved, bool requires_dense) {
  const Tensor rows = saved.to(Order::RowMajor);
  const Pattern& pattern = *parameter.pattern();
  const bool is_whole = rows.shape() == parameter.shape();
  if (requires_dense || (is_whole && pattern.stores_every_position())) return rows.clone();
  if (!is_whole) return parameter.expanded(rows);
  Tensor stored = Tensor::empty(Shape{pattern.stored_size()});
  pattern.layout().from_dense(pattern, rows.storage(), stored.mutable_storage());
  return stored;
}

}  // namespace lacuna
