// A dense weight behind N:M sparse activations, as the operations keep_nm and linear run it: the
// selection is part of the forward pass, and of the backward pass its gradient's.
#include "lacuna/framework/autograd/engine.h"
#include "lacuna/framework/autograd/ops/keep.h"
#include "lacuna/framework/autograd/ops/linear.h"
#include "linear/contender.h"

namespace lacuna::bench {
namespace {

class ActivationContender final : public LinearContender {
 public:
  ActivationContender(const LinearWorkload& w, int n, int m)
      : w_(w),
        n_(n),
        m_(m),
        weight_(std::make_shared<Parameter>(w.weight.shape(), Initializer::constant(0.0))) {
    weight_->assign(w.weight);
  }

  void change_weights() override { weight_->mutable_values(); }
  void release_results() override { x_ = y_ = Variable(); }

  void forward() override {
    x_ = Variable::leaf(w_.x);
    y_ = linear(keep_nm(x_, n_, m_), weight_, w_.bias);
  }
  void backward() override {
    weight_->zero_gradient();
    lacuna::backward(y_, w_.dy);
  }

  Tensor y() const override { return y_.value(); }
  Tensor dx() const override { return x_.gradient(); }
  Tensor dw() const override { return weight_->gradient(); }

 private:
  const LinearWorkload& w_;
  int n_, m_;
  ParameterPtr weight_;
  Variable x_, y_;
};

}  // namespace

LinearContenderPtr make_sparse_activations(const LinearWorkload& workload, int n, int m) {
  return std::make_unique<ActivationContender>(workload, n, m);
}

}  // namespace lacuna::bench
