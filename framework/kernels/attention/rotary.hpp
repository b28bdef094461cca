// Rotary position embeddings: pairs of features rotated by angles that grow with the position.
#pragma once

#include <cstdint>

#include "lacuna/framework/core/tensor.h"

namespace lacuna {

/// The direction: the gradient of a rotation is the rotation back.
enum class Rotation { Forward, Back };

/// cos and sin of t · base^(−2i/d) for positions t = first + (0 … length − 1) and pairs i < d/2.
/// *Shapes:* [2, length, d/2], or [2, d/2, length] if the activations are in slabs of the batch.
/// *Cost:* a sine and a cosine in double precision each.
Tensor rotary_table(int64_t length, int64_t head_features, double base, Order order,
                    int64_t first = 0);

/// The rotated columns: the first `heads` parts of d columns in a row of x; the others are copied.
struct RotaryShape {
  int64_t heads = 0;          ///< of queries and keys together
  int64_t head_features = 0;  ///< d, even
  int64_t length = 0;         ///< the position of row r is r % length
};

/// (y_i, y_{i + d/2}) = (x_i c − x_{i + d/2} s, x_{i + d/2} c + x_i s) in each of the heads, the
/// sign of s set by `rotation`. *Shapes:* x [..., length, features], row-major or in slabs of the
/// batch; y of x's shape and order; `table` that of this order. *Source:* Su et al., "RoFormer",
/// arXiv:2104.09864, with the pairs of Llama's code.
void rotate(const RotaryShape& shape, Rotation rotation, const Tensor& table, const Tensor& x,
            Tensor& y);

}  // namespace lacuna
