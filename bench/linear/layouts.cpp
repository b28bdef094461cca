// lacuna's own layouts, run as the linear operation and Adam run them.
#include <utility>

#include "lacuna/framework/kernels/nm/nm_selection.hpp"
#include "lacuna/framework/kernels/pointwise/optimizer_update.hpp"
#include "lacuna/framework/kernels/pointwise/reorder.hpp"
#include "linear/contender.h"

namespace lacuna::bench {
namespace {

class LayoutContender final : public LinearContender {
 public:
  LayoutContender(const LinearWorkload& w, PatternPtr pattern, Activations activations)
      : weight_(w.weight),
        bias_(w.bias),
        pattern_(std::move(pattern)),
        order_(pattern_->layout().order(w.batch, std::max(w.in, w.out))),
        outer_(activations == Activations::OwnOrder ? order_ : Order::RowMajor),
        x_(outer_ == Order::BatchSlabs ? w.x_slabs : w.x),
        dy_(outer_ == Order::BatchSlabs ? w.dy_slabs : w.dy),
        values_(Tensor::empty(Shape{pattern_->stored_size()})),
        gradient_(Tensor::zeros(values_.shape())),
        exp_avg_(Tensor::zeros(values_.shape())),
        exp_avg_sq_(Tensor::zeros(values_.shape())) {
    take_values();
  }

  void change_weights() override { ++version_; }
  void release_results() override { input_ = y_ = dx_ = Tensor(); }

  // The weights outside the mask are zero, so that the same mask is selected.
  void select_mask() override {
    const Shape& shape = weight_.shape();
    const BitMask mask = transposable_select(shape[0], shape[1], weight_.storage());
    pattern_ = Pattern::make(pattern_->layout(), shape, Positions::of(shape, mask));
    take_values();
    change_weights();
  }

  void forward() override {
    input_ = reordered(x_, order_);
    y_ = reordered(pattern_->layout().forward(view(), input_, bias_), outer_);
  }

  void backward() override {
    const Layout& layout = pattern_->layout();
    const Tensor dy = reordered(dy_, order_);
    dx_ = reordered(layout.input_gradient(view(), dy), outer_);
    layout.weight_gradient(*pattern_, dy, input_, Accumulate::No, gradient_.mutable_storage());
  }

  void update() override {
    constexpr AdamCoefficients kAdam{.beta1 = 0.9f,
                                     .one_minus_beta1 = 0.1f,
                                     .beta2 = 0.999f,
                                     .one_minus_beta2 = 0.001f,
                                     .step_size = 1e-5f,
                                     .root_scale = 1.0f,
                                     .eps = 1e-8f};
    adam_update(kAdam, values_.mutable_storage(), gradient_.storage(), exp_avg_.mutable_storage(),
                exp_avg_sq_.mutable_storage());
  }

  Tensor y() const override { return y_; }
  Tensor dx() const override { return dx_; }
  Tensor dw() const override { return pattern_->layout().to_dense(*pattern_, gradient_.storage()); }

 private:
  void take_values() {
    pattern_->layout().from_dense(*pattern_, weight_.storage(), values_.mutable_storage());
  }

  WeightView view() {
    return {.pattern = *pattern_,
            .values = values_.storage(),
            .version = version_,
            .derived = &derived_};
  }

  Tensor weight_, bias_;
  PatternPtr pattern_;
  Order order_, outer_;  // of the products, and of what goes in and comes out
  Tensor x_, dy_, values_, gradient_, exp_avg_, exp_avg_sq_, input_, y_, dx_;
  DerivedValues derived_;
  uint64_t version_ = 0;
};

}  // namespace

LinearContenderPtr make_layout(const LinearWorkload& workload, PatternPtr pattern,
                               Activations activations) {
  return std::make_unique<LayoutContender>(workload, std::move(pattern), activations);
}

}  // namespace lacuna::bench
