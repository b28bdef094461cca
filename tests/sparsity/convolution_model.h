// A small model with a convolution's weight, [8, 8, 3, 2], shared by the tests of what sparsity
// algorithms make of one. The weight is used by a product of matrices, which stands for a
// convolution here: masks, gradients and states do not know the difference.
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "lacuna/framework/autograd/engine.h"
#include "lacuna/framework/autograd/ops/loss.h"
#include "lacuna/framework/autograd/ops/matmul.h"
#include "lacuna/framework/autograd/ops/shape.h"
#include "lacuna/framework/io/yaml.h"
#include "lacuna/framework/nn/sequential.h"
#include "lacuna/framework/train/builtins.h"
#include "lacuna/layers/activations.h"
#include "lacuna/layers/linear.h"
#include "lacuna/optimizers/adam.h"
#include "lacuna/sparsity/configure.h"
#include "random_values.h"

namespace lacuna {

/// Y = X W, W being a convolution's weight as the matrix [out, in · kh · kw]. Whatever layout holds
/// it, its gradient comes whole.
class TapProduct final : public Module {
 public:
  struct Options {
    Shape weight = {8, 8, 3, 2};
  };
  explicit TapProduct(const Options& options) {
    weight_ = register_parameter(
        "weight", std::make_shared<Parameter>(options.weight, Initializer::normal(0.3)));
    weight_->use = WeightUse::Convolution;
  }
  std::string_view type() const override { return "tap_product"; }

  /// Gives the parameter the gradient of the last backward, and returns it.
  Tensor hand_over() {
    weight_->accumulate(leaf_.gradient());
    return std::exchange(leaf_, Variable()).gradient();
  }

 protected:
  Variable forward(const Variable& x) override {
    leaf_ = Variable::leaf(weight_->to_dense());
    const Shape& shape = weight_->shape();
    return matmul(x, reshape(leaf_, Shape{matrix_rows(shape), matrix_columns(shape)}));
  }

 private:
  ParameterPtr weight_;
  Variable leaf_;
};

/// conv.weight [8, 8, 3, 2], ReLU, fc [4, 48], trained on random data with Adam.
struct ConvolutionModel {
  explicit ConvolutionModel(uint64_t seed = 0) {
    register_builtins();
    conv = &model.add<TapProduct>("conv");
    model.add<ReLU>("relu");
    model.add<Linear>("fc", {.in_features = 48, .out_features = 4});
    model.initialize(seed);
    optimizer = std::make_unique<Adam>(model.parameters(), AdamOptions{.lr = 0.01});
  }
  ConvolutionModel(const std::string& sparsity, const std::string& layout, uint64_t seed = 0)
      : ConvolutionModel(seed) {
    Config config = parse_yaml(sparsity, "c.yaml");
    std::vector<Config> entries = config.is_list() ? config.items() : std::vector{config};
    for (Config& entry : entries) entry.set("layout", layout);
    algorithm = configure(config, 0);
    config.require_all_read();
    apply(*algorithm);
  }

  void apply(SparsityAlgorithm& sparsity) {
    model.apply(sparsity);
    optimizer->apply(sparsity);
  }
  /// The gradient of conv.weight at every position, of `batches` micro-batches together.
  Tensor forward_backward(int batches = 1) {
    Tensor sum = Tensor::zeros(weight().shape());
    for (int batch = 0; batch < batches; ++batch) {
      const std::string data = "data " + std::to_string(steps++ % 5);
      std::vector<int64_t> classes;
      for (int64_t i = 0; i < 12; ++i) classes.push_back((i * i + steps) % 4);
      const Variable x(random_tensor(Shape{12, 8}, data));
      backward(cross_entropy(model(x), IndexTensor(Shape{12}, classes)));
      const Tensor gradient = conv->hand_over();
      for (int64_t i = 0; i < sum.numel(); ++i) sum.mutable_data()[i] += gradient.data()[i];
    }
    return sum;
  }
  void step() {
    forward_backward(2);
    optimizer->step();
    optimizer->zero_grad();
  }
  Parameter& weight() { return *model.parameter("conv.weight"); }

  Sequential model;
  TapProduct* conv = nullptr;
  std::unique_ptr<Adam> optimizer;
  std::unique_ptr<SparsityAlgorithm> algorithm;
  int64_t steps = 0;
};

}  // namespace lacuna
