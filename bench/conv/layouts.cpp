// lacuna's own layouts, run as the convolution operation runs them.
#include <utility>

#include "conv/contender.h"
#include "lacuna/framework/kernels/pointwise/reorder.hpp"

namespace lacuna::bench {
namespace {

// The order in which a layer behind this one has its input, and gives its gradient.
Order order_behind(const Layout& layout, ConvolutionShape shape) {
  const Extent output = shape.output();
  shape.in_channels = shape.out_channels;
  shape.image = output;
  shape.window = {.kernel = {1, 1}};
  return layout.convolutions(shape).order(shape);
}

class LayoutContender final : public ConvolutionContender {
 public:
  LayoutContender(const ConvolutionWorkload& w, PatternPtr pattern)
      : w_(w),
        pattern_(std::move(pattern)),
        x_(w.x.in(layout().convolutions(w.shape).order(w.shape))),
        dy_(w.dy.in(order_behind(layout(), w.shape))),
        values_(Tensor::empty(Shape{pattern_->stored_size()})) {
    layout().from_dense(*pattern_, w.weight.storage(), values_.mutable_storage());
  }

  void change_weights() override { ++version_; }
  void release_results() override { y_ = dx_ = gradient_ = Tensor(); }

  void run(Product product) override {
    switch (product) {
      case Product::Forward:
        y_ = layout().convolutions(w_.shape).forward(view(), w_.shape, x_, Tensor());
        break;
      case Product::InputGradient:
        dx_ = layout().convolutions(w_.shape).input_gradient(view(), w_.shape, dy_);
        break;
      case Product::WeightGradient:
        gradient_ = Tensor::empty(values_.shape());
        layout().convolutions(w_.shape).weight_gradient(
            *pattern_, w_.shape, dy_, x_, Accumulate::No, gradient_.mutable_storage());
        break;
    }
  }

  // Results have the shapes and orders of operands: y those of dy, dx those of x.
  void convert(Product product) override {
    if (product == Product::WeightGradient) return;
    const bool is_forward = product == Product::Forward;
    const Images& from = is_forward ? w_.x : w_.dy;
    const Images& back = is_forward ? w_.dy : w_.x;
    const Order into = is_forward ? x_.order() : dy_.order();
    const Order out_of = is_forward ? dy_.order() : x_.order();
    reordered(from.in(Order::RowMajor), into);
    reordered(back.in(out_of), Order::RowMajor);
  }

  Tensor y() const override { return reordered(y_, Order::RowMajor); }
  Tensor dx() const override { return reordered(dx_, Order::RowMajor); }
  Tensor dw() const override { return layout().to_dense(*pattern_, gradient_.storage()); }

 private:
  const Layout& layout() const { return pattern_->layout(); }
  WeightView view() {
    return {.pattern = *pattern_,
            .values = values_.storage(),
            .version = version_,
            .derived = &derived_};
  }

  const ConvolutionWorkload& w_;
  PatternPtr pattern_;
  Tensor x_, dy_, values_, y_, dx_, gradient_;
  DerivedValues derived_;
  uint64_t version_ = 0;
};

}  // namespace

ConvolutionContenderPtr make_convolution_layout(const ConvolutionWorkload& workload,
                                                PatternPtr pattern) {
  return std::make_unique<LayoutContender>(workload, std::move(pattern));
}

}  // namespace lacuna::bench
