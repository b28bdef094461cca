#include "common/dense_opponent.h"

#if LACUNA_HAVE_DNNL
#include <dnnl.h>
#else
#include "lacuna/framework/kernels/dense/gemm.hpp"
#endif

namespace lacuna::bench {
namespace {

// C[m, n] = op(A) op(B), with A stored as [k, m] and B as [n, k] if their flag is 'T'.
void multiply(char transpose_a, char transpose_b, int64_t k, const Tensor& a, const Tensor& b,
              Tensor& c) {
  const int64_t m = c.shape()[0], n = c.shape()[1];
#if LACUNA_HAVE_DNNL
  dnnl_sgemm(transpose_a, transpose_b, m, n, k, 1.0f, a.data(), a.shape()[1], b.data(),
             b.shape()[1], 0.0f, c.mutable_data(), n);
#else
  gemm({.m = m,
        .n = n,
        .k = k,
        .transpose_a = transpose_a == 'T' ? Transpose::Yes : Transpose::No,
        .transpose_b = transpose_b == 'T' ? Transpose::Yes : Transpose::No,
        .a = a.data(),
        .b = b.data(),
        .c = c.mutable_data()});
#endif
}

}  // namespace

std::string dense_opponent() {
#if LACUNA_HAVE_DNNL
  return "raw dnnl_sgemm";
#else
  return "lacuna's own dense products";
#endif
}

void opponent_forward(const Tensor& x, const Tensor& weight, Tensor& y) {
  multiply('N', 'T', x.shape()[1], x, weight, y);
}

void opponent_input_gradient(const Tensor& dy, const Tensor& weight, Tensor& dx) {
  multiply('N', 'N', dy.shape()[1], dy, weight, dx);
}

void opponent_weight_gradient(const Tensor& dy, const Tensor& x, Tensor& dw) {
  multiply('T', 'N', x.shape()[0], dy, x, dw);
}

}  // namespace lacuna::bench
