// The configuration of a small MLP that `widen` makes wider, with options of sparse_mup.
#pragma once

namespace lacuna {

/// All but `data` and `train`.
inline constexpr const char* kWidenedMlp = R"(
model:
  widen: {match: parameters, keys: [wide]}
  define:
    block: {arguments: {wide: 16}, layers: [{type: linear, name: fc, out_features: $wide}, relu]}
  layers:
    - flatten
    - {type: block, name: a}
    - {type: block, name: b}
    - {type: linear, name: head, out_features: 10}
parametrization: {type: sparse_mup, base_width: 16, weight_decay: all, output_multiplier: false}
optimizer: {type: adamw, lr: 0.01, weight_decay: 0.1}
sparsity: {algorithm: set, sparsity: 0.8, layout: csr, update: {freq: 2}, param_filter: "*.fc.weight"}
)";

}  // namespace lacuna
