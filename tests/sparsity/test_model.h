// A small model, its data, and a training step, shared by the tests of the algorithms.
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <vector>

#include "lacuna/framework/autograd/engine.h"
#include "lacuna/framework/autograd/ops/loss.h"
#include "lacuna/framework/nn/sequential.h"
#include "lacuna/layers/activations.h"
#include "lacuna/layers/linear.h"
#include "lacuna/optimizers/adam.h"
#include "lacuna/sparsity/algorithm.h"

namespace lacuna {

/// An array aligned to a parameter's pattern, in the logical shape.
inline std::vector<float> whole(const Parameter& parameter, const Tensor& stored) {
  return parameter.pattern()->layout().to_dense(*parameter.pattern(), stored.storage()).to_vector();
}
inline std::vector<float> whole(const Parameter& parameter) {
  return parameter.to_dense().to_vector();
}

/// Values and optimizer states of a sparse parameter are zero where its mask is.
inline void expect_zero_outside(const Parameter& parameter) {
  const ByteArray mask = parameter.mask();
  std::vector<std::vector<float>> arrays{whole(parameter)};
  for (const auto& [name, slot] : parameter.slots()) {
    arrays.push_back(whole(parameter, slot.values));
  }
  for (const std::vector<float>& array : arrays) {
    for (size_t i = 0; i < mask.values.size(); ++i) {
      ASSERT_TRUE(mask.values[i] != 0 || array[i] == 0.0f) << parameter.name();
    }
  }
}

/// fc1 [16, 12], ReLU, fc2 [4, 16], trained on random data with Adam.
struct TestModel {
  explicit TestModel(uint64_t seed = 0, const RegrownWeights& regrown = {}) {
    model.add<Linear>("fc1", {.in_features = 12, .out_features = 16});
    model.add<ReLU>("relu");
    model.add<Linear>("fc2", {.in_features = 16, .out_features = 4});
    model.initialize(seed);
    optimizer =
        std::make_unique<Adam>(model.parameters(), AdamOptions{.lr = 0.01, .regrown = regrown});
    const CounterRng rng(seed, "data");
    x = Tensor::empty(Shape{20, 12});
    for (int64_t i = 0; i < x.numel(); ++i) {
      x.mutable_data()[i] = 2.0f * rng.uniform(static_cast<uint64_t>(i)) - 1.0f;
    }
    std::vector<int64_t> classes;
    for (uint64_t i = 0; i < 20; ++i)
      classes.push_back(static_cast<int64_t>(rng.bits(5000 + i) % 4));
    labels = IndexTensor(Shape{20}, classes);
  }

  void apply(SparsityAlgorithm& algorithm) {
    model.apply(algorithm);
    optimizer->apply(algorithm);
  }
  void forward_backward() { backward(cross_entropy(model(Variable(x)), labels)); }
  void step() {
    forward_backward();
    optimizer->step();
    optimizer->zero_grad();
  }
  Parameter& weight(const char* name = "fc1.weight") { return *model.parameter(name); }

  Sequential model;
  std::unique_ptr<Adam> optimizer;
  Tensor x;
  IndexTensor labels;
};

}  // namespace lacuna
