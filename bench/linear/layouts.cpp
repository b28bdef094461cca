// lacuna's own layouts, run as the linear operation runs them.
#include "lacuna/framework/core/bit_mask.h"
#include "lacuna/framework/layouts/pattern.h"
#include "linear/contender.h"

namespace lacuna::bench {
namespace {

class LayoutContender final : public LinearContender {
 public:
  LayoutContender(const LinearWorkload& w, PatternPtr pattern)
      : w_(w),
        pattern_(std::move(pattern)),
        values_(Tensor::empty(Shape{pattern_->stored_size()})),
        gradient_(Tensor::zeros(values_.shape())) {
    pattern_->layout().from_dense(*pattern_, w.weight.storage(), values_.mutable_storage());
  }

  void forward() override {
    y_ = pattern_->layout().forward({.pattern = *pattern_, .values = values_.storage()}, w_.x,
                                    w_.bias);
  }
  void backward() override {
    dx_ = pattern_->layout().input_gradient({.pattern = *pattern_, .values = values_.storage()},
                                            w_.dy);
    pattern_->layout().weight_gradient(*pattern_, w_.dy, w_.x, Accumulate::No,
                                       gradient_.mutable_storage());
  }
  Tensor y() const override { return y_; }
  Tensor dx() const override { return dx_; }
  Tensor dw() const override { return pattern_->layout().to_dense(*pattern_, gradient_.storage()); }

 private:
  LinearWorkload w_;
  PatternPtr pattern_;
  Tensor values_, gradient_, y_, dx_;
};

}  // namespace

std::unique_ptr<LinearContender> make_dense(const LinearWorkload& w) {
  return std::make_unique<LayoutContender>(w, Pattern::dense(w.weight.shape()));
}

std::unique_ptr<LinearContender> make_masked(const LinearWorkload& w) {
  return std::make_unique<LayoutContender>(
      w, Pattern::masked(w.weight.shape(), BitMask::from_bytes(w.mask)));
}

}  // namespace lacuna::bench
