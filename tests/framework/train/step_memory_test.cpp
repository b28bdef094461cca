// What a training step of a convolutional network holds at most, counted in bytes of buffers, as a
// share of what it cannot do without.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <memory>
#include <string>

#include "framework/train/tiny_convolution.h"
#include "lacuna/framework/core/buffer.h"
#include "lacuna/framework/core/parallel.h"
#include "lacuna/framework/io/yaml.h"
#include "lacuna/framework/nn/module_rows.h"
#include "lacuna/framework/train/loop/training_step.hpp"
#include "lacuna/framework/train/parts/experiment.hpp"

namespace lacuna::step_memory_test {
namespace {

// A network of some blocks in batches of 64, for all layouts and algorithms; and ResNet-20 as it is
// trained on CIFAR-10, in batches of 128.
struct Network {
  int64_t batch_size, steps;  // all but the first are measured
  const char* layers;
};

constexpr Network kShort{64, 4, R"(  layers:
    - {type: conv2d, name: conv1, out_channels: 16, kernel: 3, padding: 1, bias: false}
    - {type: batch_norm, name: bn1}
    - relu
    - {type: block, name: layer1, repeat: 3, channels: 16}
    - {type: block, name: layer2, repeat: 2, channels: 32, first: {stride: 2}}
    - global_average_pool
    - {type: linear, name: linear, out_features: 10}
)"};

constexpr Network kResNet20{128, 2, R"(  layers:
    - {type: conv2d, name: conv1, out_channels: 16, kernel: 3, padding: 1, bias: false}
    - {type: batch_norm, name: bn1}
    - relu
    - {type: block, name: layer1, repeat: 3, channels: 16}
    - {type: block, name: layer2, repeat: 3, channels: 32, first: {stride: 2}}
    - {type: block, name: layer3, repeat: 3, channels: 64, first: {stride: 2}}
    - global_average_pool
    - {type: linear, name: linear, out_features: 10}
)"};

std::unique_ptr<Experiment> build(const Network& network, const std::string& sparsity) {
  const std::string batch = std::to_string(network.batch_size);
  return build_experiment(
      parse_yaml("data: {type: colour_glyphs, train_size: " +
                     std::to_string(network.batch_size * network.steps) +
                     ", test_size: 8, augment: {crop: 4, flip: true}}\nmodel:" + kBasicBlock +
                     network.layers + "optimizer: {type: sgd, lr: 0.05, momentum: 0.9}\n" +
                     "train: {batch_size: " + batch + ", threads: 1, epochs: 2}\n" + sparsity,
                 "e.yaml"));
}

// Input and output of each convolution once, each parameter three times (value, gradient,
// momentum), and two gradients of the largest of these activations.
int64_t needed_bytes(const Experiment& e) {
  constexpr auto kFloat = static_cast<int64_t>(sizeof(float));
  int64_t activations = 0, largest = 0;
  for (const ModuleRow& row : module_rows(*e.model, e.data.train->example_shape())) {
    if (row.module->type() != "conv2d") continue;
    const int64_t in = row.input->numel(), out = row.output->numel();
    activations += in + out;
    largest = std::max({largest, in, out});
  }
  return kFloat * (e.train.batch_size * (activations + 2 * largest) + 3 * e.numel());
}

// The most that is held in any of the epoch's steps after the first, beside what was there before.
int64_t held_bytes(Experiment& e, int64_t before) {
  for (int64_t step = 0; step < e.steps_per_epoch(); ++step) {
    if (step == 1) reset_memory_peak();  // what lasts, as momentum and scratch memory, is there
    run_batches(e);
    e.optimizer->step();
    e.optimizer->zero_grad();
  }
  return memory_stats().peak - before;
}

// On one thread: each has scratch memory of its own.
class StepMemory : public testing::Test {
 protected:
  StepMemory() { set_num_threads(1); }
  ~StepMemory() override { set_num_threads(before_); }

  void expect_little(const std::string& sparsity, const Network& network = kShort) {
    const int64_t before = memory_stats().current;
    const auto e = build(
        network,
        sparsity.empty() ? "" : "sparsity: {param_filter: 'layer*.conv*', " + sparsity + "}\n");
    const auto needed = static_cast<double>(needed_bytes(*e));
    const double share = static_cast<double>(held_bytes(*e, before)) / needed;
    EXPECT_GT(share, 0.9);  // else it does not count what it means to
    EXPECT_LT(share, 1.3);
    RecordProperty("share", std::to_string(share));
  }

 private:
  const int before_ = num_threads();
};

TEST_F(StepMemory, OfDenseConvolutions) { expect_little(""); }

TEST_F(StepMemory, OfMaskedConvolutions) {
  expect_little("algorithm: static, sparsity: 0.9, layout: masked");
}

TEST_F(StepMemory, OfSparseConvolutions) {
  expect_little("algorithm: static, sparsity: 0.9, layout: csr");
}

TEST_F(StepMemory, OfResNet20) {
  expect_little("", kResNet20);
  expect_little("algorithm: static, sparsity: 0.9, layout: csr", kResNet20);
}

TEST_F(StepMemory, OfStepsThatChangeMasksByDenseGradients) {
  for (const char* layout : {"masked", "csr"}) {
    SCOPED_TRACE(layout);
    expect_little("algorithm: rigl, sparsity: 0.9, update: {freq: 1}, layout: " +
                  std::string(layout));
  }
}

}  // namespace
}  // namespace lacuna::step_memory_test
