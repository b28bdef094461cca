// Grids of int8 weights: what one step is worth in each row, and the step nearest to a weight.
#pragma once

#include <cstdint>
#include <vector>

#include "lacuna/framework/core/tensor.h"
#include "lacuna/sparsity/one_shot/one_shot.h"

namespace lacuna {

/// Steps on either side of zero.
inline constexpr int kGridSteps = 127;

/// What a step is worth in each row of a weight; 0 for a row of zeros. *Shapes:* dimension 0 is the
/// rows. *Cost:* with Mse 80 passes over the weight.
std::vector<float> grid_scales(const Tensor& weight, GridClip clip);

/// The step nearest to w, ties to the even one, within ±kGridSteps; 0 where a step is worth 0.
int8_t grid_step(float w, float scale);
/// w as the grid has it.
inline float on_grid(float w, float scale) {
  return static_cast<float>(grid_step(w, scale)) * scale;
}

}  // namespace lacuna
