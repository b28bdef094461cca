#include "lacuna/sparsity/dense_gradient.h"

#include "lacuna/framework/kernels/gemm.h"

namespace lacuna {

void DenseGradient::observe(const Tensor& gradient) {
  if (!sum_.defined()) {
    sum_ = gradient;
    return;
  }
  if (!sum_.unique()) sum_ = sum_.clone();
  const std::span<float> into = sum_.mutable_storage();
  const std::span<const float> from = gradient.storage();
  for (size_t i = 0; i < into.size(); ++i) into[i] += from[i];
}

void DenseGradient::observe_product(const Tensor& dy, const Tensor& x) {
  const Tensor dy_rows = dy.to(Order::RowMajor), x_rows = x.to(Order::RowMajor);
  Tensor product = Tensor::empty(Shape{dy.shape().features(), x.shape().features()});
  gemm({.m = dy.shape().features(),
        .n = x.shape().features(),
        .k = x.shape().batch(),
        .transpose_a = Transpose::Yes,
        .a = dy_rows.data(),
        .b = x_rows.data(),
        .c = product.mutable_data()});
  observe(product);
}

}  // namespace lacuna
