// Logits of very many classes in tiles, which are never whole: their loss and the largest of them.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "lacuna/framework/autograd/variable.h"
#include "lacuna/framework/kernels/rowwise/class_tile.hpp"
#include "lacuna/framework/param/gradient_sink.h"

namespace lacuna {

/// A tile: the weight [classes, features] of some consecutive classes, and their bias [classes],
/// undefined without one.
struct ClassTile {
  WeightReference weight;
  Variable bias;
};

/// The logits X Wᵀ + b of all tiles, one tile after the other, which the functions below compute
/// tile by tile. For any other operation they become one tensor.
class TiledLogits final : public DeferredValue {
 public:
  TiledLogits(Variable x, std::vector<ClassTile> tiles)
      : x_(std::move(x)), tiles_(std::move(tiles)) {}

  Variable compute() override;
  const Variable& x() const { return x_; }
  const std::vector<ClassTile>& tiles() const { return tiles_; }

 private:
  Variable x_;
  std::vector<ClassTile> tiles_;
};

/// Logits in tiles. *Shapes:* x [batch, features] → [batch, Σ classes]. *Lifetime:* of the weights,
/// until they change. *Errors:* ShapeError unless x is a matrix that fits all weights.
Variable tiled_logits(const Variable& x, std::vector<ClassTile> tiles);

/// The mean over the examples that have a label of −Σ_l log softmax(logits)_l / n, with l over the
/// n labels of the example: cross entropy with a target that is uniform over the labels. 0, without
/// a gradient, where no example has one. Stable for any finite logits, sums in double. Logits in
/// tiles are computed twice: for the sums of their exponentials, and for the gradient, which goes
/// to the weights tile by tile. *Shapes:* logits [batch, classes], labels [batch, most], with
/// kIgnoredLabel where an example has fewer → scalar. *Errors:* ShapeError with both shapes;
/// DataError that names a label out of range. *Cost:* memory for a tile of logits and its gradient.
Variable multi_label_cross_entropy(const Variable& logits, const IndexTensor& labels);

/// The `count` classes with the largest logits of each example, computed without a graph. *Shapes:*
/// logits [batch, classes].
LargestLogits largest_logits(const Variable& logits, int64_t count);

}  // namespace lacuna
