// A run of each configuration that has a state of its own ends, killed and resumed many times, as
// one that was never interrupted.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "framework/program/resume/resumed_run.h"
#include "framework/train/widened_mlp.h"

namespace lacuna::killed_configurations_test {
namespace {

struct Variant {
  std::string name;
  std::vector<std::string> settings;
};

std::vector<std::string> set(const std::vector<std::string>& settings) {
  std::vector<std::string> arguments;
  for (const std::string& setting : settings) {
    arguments.push_back("--set");
    arguments.push_back(setting);
  }
  return arguments;
}

const std::vector<Variant>& variants() {
  static const std::vector<Variant> all = {
      {"DenseAdam", {}},
      {"SparseMomentum",
       {"sparsity={sparsity: 0.8, param_filter: fc1.weight}",
        "optimizer={type: sgd, lr: {type: cosine, init: 0.1, half_period: 18}, momentum: 0.9, "
        "nesterov: true, clip_norm: 1.0}",
        "train.prefetch=0"}},
      {"AugmentedColours",
       {"data={type: colour_glyphs, train_size: 100, test_size: 30, validation: 10, "
        "normalize: standard, augment: {crop: 4, flip: true, cutout: 8}}"}},
      {"MixedColours",
       {"data={type: colour_glyphs, train_size: 100, test_size: 30, validation: 10, augment: "
        "{crop: "
        "2, rand_augment: {operations: 2, magnitude: 9}, mixup: 0.4}}",
        "loss={type: cross_entropy, label_smoothing: 0.1}",
        "sparsity={algorithm: set, sparsity: 0.8, layout: csr, update: {freq: 2}}"}},
      {"BalancedSampling",
       {"data.sampling=balanced", "train.shards=2",
        "loss={type: cross_entropy, class_weights: [1, 2, 1, 1, 1, 1, 1, 1, 1, 3]}"}},
      {"BalancedWeights", {"loss={class_weights: balanced}"}},
      {"RigL",
       {"sparsity={algorithm: rigl, sparsity: 0.8, update: {freq: 3}, param_filter: fc1.weight}"}},
      {"SRigL",
       {"sparsity={algorithm: srigl, sparsity: 0.9, min_salient: 0.9, update: {freq: 3}, layout: "
        "csr}"}},
      {"Set", {"sparsity={algorithm: set, sparsity: 0.8, update: {freq: 2}}"}},
      {"Gmp",
       {"sparsity={algorithm: gmp, update: {freq: 2}, "
        "sparsity: {type: polynomial, init: 0.1, final: 0.8, start: 2, end: 14}}"}},
      {"Snip", {"sparsity={algorithm: snip, sparsity: 0.8}"}},
      {"ParametrizedGmp",
       {"parametrization={type: sparse_mup, base_width: 6, density: first}", "optimizer.type=adamw",
        "sparsity={algorithm: gmp, update: {freq: 2}, "
        "sparsity: {type: polynomial, init: 0.3, final: 0.8, start: 2, end: 14}}"}},
      {"ParametrizedSet",
       {"parametrization={type: sparse_mup, base_width: 6}", "train.shards=2",
        "sparsity={algorithm: set, sparsity: 0.8, layout: csr, update: {freq: 2}}"}},
      {"DynamicByAge",
       {"sparsity={algorithm: dynamic, grow: {mixed: 0.5}, sparsity: 0.8, layout: csr, "
        "update: {freq: 2}}",
        "optimizer={type: adamw, lr: 0.01, regrown: {age: own, warmup: 3}}"}},
      {"SparseGpt",
       {"sparsity={algorithm: sparsegpt, sparsity: 0.6, calibration: 32, layout: csr}"}},
      {"PhasesOfOneShot",
       {"sparsity={phases: [{until: 4, algorithm: wanda, sparsity: 0.5, calibration: 32}, "
        "{until: 8, algorithm: static, sparsity: 0.5}, {until: 13, algorithm: admm, sparsity: 0.8, "
        "least_squares: true}, {algorithm: rigl, sparsity: 0.8, update: {freq: 2}}]}"}},
      {"Snfs", {"sparsity={algorithm: snfs, sparsity: 0.8, update: {freq: 3}}"}},
      {"StraightThrough",
       {"sparsity={algorithm: ste, update: {freq: 2}, "
        "sparsity: {type: polynomial, init: 0.1, final: 0.8, start: 2, end: 14}}"}},
      {"Saliency",
       {"sparsity={algorithm: saliency, update: {freq: 3}, "
        "sparsity: {type: polynomial, init: 0.1, final: 0.8, start: 2, end: 14}}"}},
      {"StructuredByBudget",
       {"sparsity={algorithm: structured, to: {flops: 0.4}, update: {freq: 3}}"}},
      {"StructuredBySaliency",
       {"sparsity={algorithm: structured, criterion: saliency, sparsity: 0.6, "
        "update: {freq: 5}, layout: csr}"}},
      {"StructuredByError",
       {"sparsity={algorithm: structured, criterion: error, sparsity: 0.6, update: {freq: 4}, "
        "calibration: 40, layout: csr}"}},
      {"StructuredByDead",
       {"sparsity={algorithm: structured, criterion: dead, update: {freq: 4}, layout: csr}"}},
      {"AcDc", {"sparsity={algorithm: acdc, sparsity: 0.8, update: {freq: 6}}"}},
      {"Group",
       {"sparsity=[{algorithm: snip, sparsity: 0.8, param_filter: fc1.weight}, "
        "{algorithm: ste, sparsity: 0.5, update: {freq: 3}, param_filter: fc2.weight}]"}},
      {"PhasesOfStateful",
       {"sparsity={phases: [{until: 5, algorithm: static, sparsity: 0.6}, "
        "{until: 11, algorithm: ste, sparsity: 0.7, update: {freq: 2}}, "
        "{algorithm: snfs, sparsity: 0.8, update: {freq: 2}}]}"}},
      {"Phases",
       {"sparsity={phases: [{until: 7, algorithm: set, sparsity: 0.7, update: {freq: 2}}, "
        "{until: 13, algorithm: dense}, {algorithm: static, sparsity: 0.8}]}"}},
      {"BlockRigL",
       {"sparsity={algorithm: rigl, sparsity: 0.6, update: {freq: 3}, layout: block, "
        "pattern: {type: block, rows: 2, cols: 4}, param_filter: fc1.weight}"}},
      {"SemiSparseAtEveryStep",
       {"sparsity={algorithm: semi_sparse, pattern: {type: nm, n: 2, m: 4}, layout: nm, "
        "decay: 0.0002, param_filter: fc1.weight}"}},
      {"SparsifiedWeights",
       {"sparsifiers=[{tensor: fc1.weight, sparsifier: {type: nm, n: 2, m: 4}, every: 2}, "
        "{tensor: fc2.weight, sparsifier: {type: scalar_fraction, fraction: 0.5}, layout: csr}]"}},
      {"Frozen", {"model.1.trainable=false", "sparsity={sparsity: 0.5, param_filter: default}"}},
      {"AveragedRigL",
       {"sparsity={algorithm: rigl, sparsity: 0.8, update: {freq: 3}, layout: csr, "
        "param_filter: fc1.weight}",
        "train.ema={decay: 0.8, start: 5}"}},
      {"AveragedPhases",
       {"sparsity={phases: [{until: 5, algorithm: static, sparsity: 0.6}, "
        "{until: 11, algorithm: ste, sparsity: 0.7, update: {freq: 2}}, "
        "{algorithm: set, sparsity: 0.8, update: {freq: 2}}]}",
        "train.ema=0.8", "train.checkpoint={every: 4, keep_last: 2, keep_best: true}"}},
      {"LearnedScales",
       {"quantize={algorithm: qat, scales: learned, start_epoch: 1, param_filter: '*.weight', "
        "calibration: 32}",
        "sparsity={algorithm: rigl, sparsity: 0.8, update: {freq: 3}, layout: csr, "
        "param_filter: fc1.weight}"}},
      {"EarlyStoppingAndBest",
       {"train.early_stopping={patience: 3}",
        "train.checkpoint={every: 7, keep_last: 1, "
        "keep_best: true}"}},
  };
  return all;
}

class KilledRun : public Resume, public testing::WithParamInterface<Variant> {};

TEST_P(KilledRun, EndsAsIfNothingHadHappened) { expect_survives(set(GetParam().settings)); }

INSTANTIATE_TEST_SUITE_P(All, KilledRun, testing::ValuesIn(variants()),
                         [](const auto& test) { return test.param.name; });

// Of a whole configuration: as many steps as the fixture's.
constexpr const char* kSchedule =
    "epochs: 3, threads: 1, log_every: 3, eval_every: 5, checkpoint: {every: 4, keep_last: 2}";

// Layers and batches are large enough for sparse products behind them.
TEST_F(Resume, BehindSparseActivationsEndsAsIfNothingHadHappened) {
  write_text(config(), std::string(R"(
data: {type: glyphs, train_size: 490, test_size: 40, validation: 10}
model:
  - flatten
  - {type: linear, name: fc1, out_features: 64}
  - relu
  - semi_sparse_activation
  - {type: linear, name: fc2, out_features: 128}
  - relu
  - {type: linear, name: fc3, out_features: 10}
optimizer: {type: adam, lr: 0.01}
train: {batch_size: 40, accumulate: 2, )") +
                           kSchedule + "}\n");
  expect_survives({});
}

TEST_F(Resume, WidenedAndParametrizedEndsAsIfNothingHadHappened) {
  write_text(config(), "data: {type: glyphs, train_size: 120, test_size: 40, validation: 10}" +
                           std::string(kWidenedMlp) + "train: {batch_size: 20, " + kSchedule +
                           "}\n");
  expect_survives({});
}

}  // namespace
}  // namespace lacuna::killed_configurations_test
