// The block as a user of lacuna writes it.
#include "lacuna/framework/autograd/engine.h"
#include "lacuna/framework/kernels/pointwise/reorder.hpp"
#include "lacuna/framework/layouts/cost/position_sample.hpp"
#include "lacuna/framework/layouts/pattern.h"
#include "lacuna/framework/nn/sequential.h"
#include "lacuna/layers/activations.h"
#include "lacuna/layers/linear.h"
#include "mlp/contender.h"

namespace lacuna::bench {
namespace {

constexpr double kDensity = 0.5;

class Model final : public MlpContender {
 public:
  Model(const MlpSize& size, const Layout& layout) {
    model_.add<Linear>("up", {.in_features = size.features, .out_features = size.hidden});
    model_.add<GELU>("gelu");
    model_.add<Linear>("down", {.in_features = size.hidden, .out_features = size.features});
    model_.initialize(0);
    if (&layout == &dense_layout()) return;
    for (const char* name : {"up.weight", "down.weight"}) {
      Parameter& weight = *model_.parameter(name);
      const Shape& shape = weight.shape();
      weight.set_pattern(
          Pattern::make(layout, shape, sample_positions(layout.pattern_shape(), shape, kDensity)));
    }
  }

  void change_weights() override {
    for (const auto& parameter : model_.parameters()) {
      parameter->mutable_values();
      parameter->zero_gradient();
    }
  }

  void forward(const Tensor& x) override {
    x_ = Variable::leaf(x);
    y_ = model_(x_);
    y_rows_ = reordered(y_.value(), Order::RowMajor);
  }

  // What the engine frees as it goes is free for the next pass.
  void backward(const Tensor& dy) override {
    lacuna::backward(y_, dy);
    dx_ = reordered(x_.gradient(), Order::RowMajor);
    x_ = y_ = Variable();
  }

  Tensor y() const override { return y_rows_; }
  Tensor dx() const override { return dx_; }
  MlpWeights weights() const override {
    return collect([](const Parameter& p) { return p.to_dense(); });
  }
  MlpWeights gradients() const override {
    return collect([](const Parameter& p) {
      return p.pattern()->layout().to_dense(*p.pattern(), p.gradient().storage());
    });
  }

 private:
  template <class Get>
  MlpWeights collect(const Get& get) const {
    return {.up = get(*model_.parameter("up.weight")),
            .up_bias = get(*model_.parameter("up.bias")),
            .down = get(*model_.parameter("down.weight")),
            .down_bias = get(*model_.parameter("down.bias"))};
  }

  Sequential model_;
  Variable x_, y_;
  Tensor y_rows_, dx_;
};

}  // namespace

MlpContenderPtr make_mlp_model(const MlpSize& size, const Layout& layout) {
  return std::make_unique<Model>(size, layout);
}

}  // namespace lacuna::bench
