#include "lacuna/framework/autograd/ops/matmul.h"

#include <utility>

#include "lacuna/framework/autograd/node.h"
#include "lacuna/framework/core/error.h"
#include "lacuna/framework/core/parallel.h"
#include "lacuna/framework/kernels/dense/gemm.hpp"
#include "lacuna/framework/kernels/pointwise/reorder.hpp"

namespace lacuna {
namespace {

struct MatmulNode final : Node {
  MatmulNode(Tensor a_, Tensor b_) : a(std::move(a_)), b(std::move(b_)) {}
  std::string_view name() const override { return "matmul"; }
  std::vector<Tensor*> saved() override { return {&a, &b}; }

  std::vector<Tensor> backward(const Tensor& grad_output) override {
    const Tensor dy = reordered(grad_output, Order::RowMajor);  // dy [..., n]
    const int64_t m = a.shape().batch(), k = b.shape()[0], n = b.shape()[1];
    std::vector<Tensor> gradients(2);
    if (needs(0)) {  // dA = dY Bᵀ   [..., k]
      gradients[0] = Tensor::empty(a.shape());
      gemm({.m = m,
            .n = k,
            .k = n,
            .transpose_b = Transpose::Yes,
            .a = dy.data(),
            .b = b.data(),
            .c = gradients[0].mutable_data()});
    }
    if (needs(1)) {  // dB = Aᵀ dY   [k, n]
      gradients[1] = Tensor::empty(b.shape());
      gemm({.m = k,
            .n = n,
            .k = m,
            .transpose_a = Transpose::Yes,
            .a = a.data(),
            .b = dy.data(),
            .c = gradients[1].mutable_data()});
    }
    return gradients;
  }

  Tensor a, b;
};

// C[i] = op(A[i]) op(B[i]) for each i.
Tensor products(const Tensor& a, Transpose transpose_a, const Tensor& b, Transpose transpose_b) {
  const bool ta = transpose_a == Transpose::Yes, tb = transpose_b == Transpose::Yes;
  const int64_t m = a.shape()[ta ? 2 : 1], k = a.shape()[ta ? 1 : 2], n = b.shape()[tb ? 1 : 2];
  Tensor c = Tensor::empty({a.shape()[0], m, n});
  float* into = c.mutable_data();
  parallel_blocks(a.shape()[0], [&](int64_t i) {
    gemm({.m = m,
          .n = n,
          .k = k,
          .transpose_a = transpose_a,
          .transpose_b = transpose_b,
          .a = a.data() + i * m * k,
          .b = b.data() + i * k * n,
          .c = into + i * m * n});
  });
  return c;
}

struct BmmNode final : Node {
  BmmNode(Tensor a_, Tensor b_) : a(std::move(a_)), b(std::move(b_)) {}
  std::string_view name() const override { return "bmm"; }
  std::vector<Tensor*> saved() override { return {&a, &b}; }

  std::vector<Tensor> backward(const Tensor& grad_output) override {
    const Tensor dy = reordered(grad_output, Order::RowMajor);  // dy [count, m, n]
    std::vector<Tensor> gradients(2);
    if (needs(0)) gradients[0] = products(dy, Transpose::No, b, Transpose::Yes);  // dA = dY Bᵀ
    if (needs(1)) gradients[1] = products(a, Transpose::Yes, dy, Transpose::No);  // dB = Aᵀ dY
    return gradients;
  }

  Tensor a, b;
};

}  // namespace

Variable matmul(const Variable& a, const Variable& b) {
  if (a.shape().rank() < 1 || b.shape().rank() != 2 || a.shape().features() != b.shape()[0]) {
    throw ShapeError("matmul: needs [..., k] and [k, n], found " + a.shape().to_string() + " and " +
                     b.shape().to_string());
  }
  const Tensor left = reordered(a.value(), Order::RowMajor),
               right = reordered(b.value(), Order::RowMajor);
  Tensor y = Tensor::empty(a.shape().with_features(b.shape()[1]));
  gemm({.m = a.shape().batch(),
        .n = b.shape()[1],
        .k = b.shape()[0],
        .a = left.data(),
        .b = right.data(),
        .c = y.mutable_data()});
  return record<MatmulNode>(std::move(y), {a, b}, left, right);
}

Variable bmm(const Variable& a, const Variable& b) {
  const Shape &left = a.shape(), &right = b.shape();
  if (left.rank() != 3 || right.rank() != 3 || left[0] != right[0] || left[2] != right[1]) {
    throw ShapeError("bmm: needs [count, m, k] and [count, k, n], found " + left.to_string() +
                     " and " + right.to_string());
  }
  const Tensor x = reordered(a.value(), Order::RowMajor), w = reordered(b.value(), Order::RowMajor);
  return record<BmmNode>(products(x, Transpose::No, w, Transpose::No), {a, b}, x, w);
}

}  // namespace lacuna
