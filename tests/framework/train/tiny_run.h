// The configuration of a small run that takes part in everything.
#pragma once

namespace lacuna {

/// A run that takes part in everything: 90 training examples of glyphs in batches of 8, two to a
/// step, which makes 6 steps an epoch; 3 epochs; a checkpoint every 4 steps, so mostly within an
/// epoch.
inline constexpr const char* kTinyRun = R"(
data: {type: glyphs, train_size: 100, test_size: 30, validation: 10}
model:
  - flatten
  - {type: linear, name: fc1, out_features: 12}
  - relu
  - {type: dropout, p: 0.3}
  - {type: linear, name: fc2, out_features: 10}
optimizer: {type: adam, lr: 0.01, weight_decay: 0.001}
train:
  epochs: 3
  batch_size: 8
  accumulate: 2
  threads: 1
  log_every: 3
  eval_every: 5
  checkpoint: {every: 4, keep_last: 2}
)";

}  // namespace lacuna
