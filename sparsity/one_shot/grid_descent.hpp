// Descent on the grid of int8 weights: one weight at a time, to the step of least output error.
#pragma once

#include <vector>

#include "lacuna/framework/core/tensor.h"
#include "lacuna/framework/layouts/mask_set.h"
#include "lacuna/sparsity/one_shot/input_gram.h"

namespace lacuna {

/// Changes `onto`, whose values on `mask` are on the grid of these scales, one value after the
/// other to the step at which the outputs are nearest to those of `weight`, while the others stay;
/// at most 8 times through each row. A sweep fixes each column before it has seen what the later
/// ones lose: here all make up for all. The error has the automatic damping (damped_factor.hpp), as
/// the sweep's. Weights of dead inputs stay. *Shapes:* all as `weight`; scales: one for each row.
/// *Cost:* out · k · in and at most 8 · out · k² operations, k what a row keeps. Results do not
/// depend on the number of threads.
void descend_on_grid(const Tensor& weight, const InputGram& gram, const MaskSet& mask,
                     const std::vector<float>& scales, Tensor& onto);

}  // namespace lacuna
