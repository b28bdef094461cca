// The two layouts that store every position: dense, and masked (dense products, then selection).
#include <algorithm>

#include "lacuna/framework/kernels/gemm.h"
#include "lacuna/framework/kernels/mask.h"
#include "lacuna/framework/layouts/layout.h"
#include "lacuna/framework/layouts/pattern.h"

namespace lacuna {
namespace {

class DenseLayout : public Layout {
 public:
  std::string_view name() const override { return "dense"; }

  int64_t stored_size(const Pattern& pattern) const override { return pattern.numel(); }

  Tensor forward(const Pattern& pattern, std::span<const float> values, const Tensor& x,
                 const Tensor& bias) const override {
    const int64_t out = pattern.shape()[0], in = pattern.shape()[1];
    const Tensor rows = x.to(Order::RowMajor);
    Tensor y = Tensor::empty(x.shape().with_features(out));
    gemm({.m = x.shape().batch(),
          .n = out,
          .k = in,
          .transpose_b = Transpose::Yes,
          .a = rows.data(),
          .b = values.data(),
          .c = y.mutable_data(),
          .bias = bias.defined() ? bias.data() : nullptr});
    return y;
  }

  Tensor input_gradient(const Pattern& pattern, std::span<const float> values,
                        const Tensor& dy) const override {
    const int64_t out = pattern.shape()[0], in = pattern.shape()[1];
    const Tensor rows = dy.to(Order::RowMajor);
    Tensor dx = Tensor::empty(dy.shape().with_features(in));
    gemm({.m = dy.shape().batch(),
          .n = in,
          .k = out,
          .a = rows.data(),
          .b = values.data(),
          .c = dx.mutable_data()});
    return dx;
  }

  void weight_gradient(const Pattern& pattern, const Tensor& dy, const Tensor& x,
                       Accumulate accumulate, std::span<float> gradient) const override {
    const int64_t out = pattern.shape()[0], in = pattern.shape()[1];
    const Tensor dy_rows = dy.to(Order::RowMajor), x_rows = x.to(Order::RowMajor);
    gemm({.m = out,
          .n = in,
          .k = x.shape().batch(),
          .transpose_a = Transpose::Yes,
          .a = dy_rows.data(),
          .b = x_rows.data(),
          .c = gradient.data(),
          .beta = accumulate == Accumulate::Yes ? 1.0f : 0.0f});
    prune(pattern, gradient);
  }

  Tensor to_dense(const Pattern& pattern, std::span<const float> values) const override {
    return Tensor::from(pattern.shape(), values);
  }

  void from_dense(const Pattern& pattern, std::span<const float> dense,
                  std::span<float> values) const override {
    std::ranges::copy(dense, values.begin());
    prune(pattern, values);
  }

  void prune(const Pattern&, std::span<float>) const override {}
};

class MaskedLayout final : public DenseLayout {
 public:
  std::string_view name() const override { return "masked"; }

  void prune(const Pattern& pattern, std::span<float> values) const override {
    select_by_mask(pattern.mask(), values);
  }
};

}  // namespace

const Layout& dense_layout() {
  static const DenseLayout layout;
  return layout;
}

const Layout& masked_layout() {
  static const MaskedLayout layout;
  return layout;
}

}  // namespace lacuna
