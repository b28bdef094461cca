// The dense opponent.
#include <cmath>

#include "common/dense_opponent.h"
#include "common/operands.h"
#include "lacuna/framework/kernels/pointwise/activation.hpp"
#include "mlp/contender.h"

namespace lacuna::bench {
namespace {

// Uniform with the variance that a linear layer's weights begin with.
Tensor random_weight(const Shape& shape, const char* name) {
  Tensor weight = random_tensor(shape, name);
  const float scale = 1.0f / std::sqrt(static_cast<float>(shape[1]));
  for (float& w : weight.mutable_storage()) w *= scale;
  return weight;
}

class Opponent final : public MlpContender {
 public:
  explicit Opponent(const MlpSize& size)
      : size_(size),
        up_(random_weight(Shape{size.hidden, size.features}, "up")),
        down_(random_weight(Shape{size.features, size.hidden}, "down")),
        d_up_(Tensor::zeros(up_.shape())),
        d_down_(Tensor::zeros(down_.shape())) {}

  void forward(const Tensor& x) override {
    allocate(x.shape()[0]);
    x_ = x;
    opponent_forward(x_, up_, before_);
    activate(Activation::GELU, before_.storage(), after_.mutable_storage());
    opponent_forward(after_, down_, y_);
  }

  void backward(const Tensor& dy) override {
    opponent_input_gradient(dy, down_, d_hidden_);
    opponent_weight_gradient(dy, after_, d_down_);
    activate_gradient(Activation::GELU, before_.storage(), d_hidden_.storage(),
                      d_hidden_.mutable_storage());
    opponent_input_gradient(d_hidden_, up_, dx_);
    opponent_weight_gradient(d_hidden_, x_, d_up_);
  }

  Tensor y() const override { return y_; }
  Tensor dx() const override { return dx_; }
  MlpWeights weights() const override {
    return {.up = up_, .up_bias = {}, .down = down_, .down_bias = {}};
  }
  MlpWeights gradients() const override {
    return {.up = d_up_, .up_bias = {}, .down = d_down_, .down_bias = {}};
  }

 private:
  void allocate(int64_t tokens) {
    if (y_.defined() && y_.shape()[0] == tokens) return;
    for (Tensor* t : {&before_, &after_, &d_hidden_}) {
      *t = Tensor::zeros(Shape{tokens, size_.hidden});
    }
    for (Tensor* t : {&y_, &dx_}) *t = Tensor::zeros(Shape{tokens, size_.features});
  }

  MlpSize size_;
  Tensor up_, down_, d_up_, d_down_, x_;
  Tensor before_, after_, d_hidden_;  // the hidden layer, before and after GELU, and its gradient
  Tensor y_, dx_;
};

}  // namespace

MlpContenderPtr make_mlp_opponent(const MlpSize& size) { return std::make_unique<Opponent>(size); }

}  // namespace lacuna::bench
