// ComplementFit: least squares by what is pruned, for masks that keep more than half.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace lacuna {

/// With C what a row prunes and G = H⁻¹, the weights of least output error on the rest are
/// w₀ − G_:C (G_CC)⁻¹ w₀_C: a factorization of what is pruned in place of one of what is kept.
class ComplementFit {
 public:
  /// Nothing where the matrix is singular. Dead inputs, whose rows are zero, stand for themselves.
  /// *Shapes:* gram [features, features]. *Cost:* features³ operations; as many doubles as the Gram
  /// matrix.
  static std::optional<ComplementFit> of(int64_t features, std::span<const double> gram);

  /// Fits rows of one support: into[row, kept] from weight[row, :], both [.., features]. Returns
  /// false, and writes nothing, where rounding is in the way. *Cost:* pruned³ / 3 operations, and
  /// 2 · features · pruned for each row.
  bool fit(std::span<const uint32_t> kept, std::span<const int64_t> rows, const float* weight,
           float* into) const;

 private:
  ComplementFit() = default;

  int64_t features_ = 0;
  std::vector<double> inverse_;  // its lower triangle
};

}  // namespace lacuna
