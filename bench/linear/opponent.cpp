// The dense opponent.
#include "common/dense_opponent.h"
#include "linear/contender.h"

namespace lacuna::bench {
namespace {

class Opponent final : public LinearContender {
 public:
  explicit Opponent(const LinearWorkload& w) : w_(w), dw_(Tensor::zeros(Shape{w.out, w.in})) {}

  void release_results() override { y_ = dx_ = Tensor(); }

  void forward() override {
    y_ = Tensor::empty(Shape{w_.batch, w_.out});
    opponent_forward(w_.x, w_.weight, y_);
  }
  void backward() override {
    dx_ = Tensor::empty(Shape{w_.batch, w_.in});
    opponent_input_gradient(w_.dy, w_.weight, dx_);
    opponent_weight_gradient(w_.dy, w_.x, dw_);
  }
  Tensor y() const override {  // with the bias that the others add
    Tensor sum = y_.clone();
    for (int64_t i = 0; i < sum.numel(); ++i) sum.mutable_data()[i] += w_.bias.data()[i % w_.out];
    return sum;
  }
  Tensor dx() const override { return dx_; }
  Tensor dw() const override { return dw_; }

 private:
  const LinearWorkload& w_;
  Tensor y_, dx_, dw_;
};

}  // namespace

LinearContenderPtr make_opponent(const LinearWorkload& workload) {
  return std::make_unique<Opponent>(workload);
}

}  // namespace lacuna::bench
