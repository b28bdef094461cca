#include "lacuna/sparsity/weights/mask_installer.h"

#include <utility>

namespace lacuna {
namespace {

PatternPtr make_pattern(const Parameter& parameter, const MaskSet& mask,
                        const LayoutPolicy& policy) {
  const Layout& layout = policy.choose(parameter, mask);
  const bool by_bits = mask.has_bits() && !mask.has_positions();
  return by_bits ? Pattern::make(layout, parameter.shape(), mask.bits(), policy.lifetime())
                 : Pattern::make(layout, parameter.shape(), mask.positions(), policy.lifetime());
}

// Positions that the mask there is, `present`, and a new one have in common.
int64_t count_kept(const Parameter& parameter, const MaskSet& mask, const MaskSet& present) {
  return parameter.pattern()->is_dense() ? mask.count() : count_common(present, mask);
}

// Moves a parameter to a pattern with this mask; returns how many positions stay.
int64_t move_parameter(Parameter& parameter, const PatternPtr& pattern, const MaskSet& mask,
                       const MaskSet& present) {
  const Pattern& old = *parameter.pattern();
  if (!old.stores_every_position() && !pattern->stores_every_position()) {
    const PatternMove move(old, *pattern, present.positions(), mask.positions());
    parameter.set_pattern(pattern, move);
    return move.kept();
  }
  const int64_t kept = count_kept(parameter, mask, present);
  parameter.set_pattern(pattern);
  return kept;
}

}  // namespace

MaskChange install_mask(Parameter& parameter, const MaskSet& mask, const LayoutPolicy& policy,
                        const InstallOptions& options) {
  const MaskSet present =
      options.present != nullptr ? *options.present : MaskSet(parameter.pattern());
  const int64_t before = present.count();
  const PatternPtr pattern = make_pattern(parameter, mask, policy);
  int64_t kept = 0;
  if (options.master != nullptr) {
    kept = count_kept(parameter, mask, present);
    take_values(parameter, pattern, *options.master);
  } else {
    kept = move_parameter(parameter, pattern, mask, present);
  }
  return {.dropped = before - kept, .grown = mask.count() - kept, .dead = dead_lines(mask)};
}

void take_values(Parameter& parameter, const PatternPtr& pattern, const Tensor& dense) {
  Tensor values = Tensor::empty(pattern->stored_shape());
  pattern->layout().from_dense(*pattern, dense.storage(), values.mutable_storage());
  parameter.replace(pattern, std::move(values));
}

void restore_layout(Parameter& parameter, const LayoutPolicy& policy) {
  if (policy.option().is_auto()) return;
  const Pattern& pattern = *parameter.pattern();
  const MaskSet mask(parameter.pattern());
  const Layout& layout = policy.choose(parameter, mask);
  if (&layout == &pattern.layout()) return;
  parameter.set_pattern(
      Pattern::make(layout, parameter.shape(), mask.positions(), policy.lifetime()));
}

}  // namespace lacuna
