#include "lacuna/framework/autograd/ops/matmul.h"

#include <gmock/gmock.h>

#include "framework/autograd/derivatives.h"
#include "lacuna/framework/autograd/ops/linear.h"
#include "lacuna/framework/core/error.h"

namespace lacuna::matmul_test {
namespace {

using test::ComplexArray;
using testing::ThrowsMessage;

// [m, k] · [k, n], or · [n, k]ᵀ.
ComplexArray product(const ComplexArray& a, const ComplexArray& b, int64_t k, int64_t n,
                     bool is_transposed) {
  ComplexArray y;
  const int64_t m = k == 0 ? 0 : static_cast<int64_t>(a.size()) / k;
  for (int64_t i = 0; i < m; ++i) {
    for (int64_t j = 0; j < n; ++j) {
      test::Complex total = 0.0;
      for (int64_t l = 0; l < k; ++l) {
        total += a[static_cast<size_t>(i * k + l)] *
                 b[static_cast<size_t>(is_transposed ? j * k + l : l * n + j)];
      }
      y.push_back(total);
    }
  }
  return y;
}

TEST(Matmul, DerivativesAgreeWithTheDefinition) {
  struct Shapes {
    Shape a, b;
  };
  for (const auto& [a, b] :
       {Shapes{{1, 1}, {1, 1}}, Shapes{{3, 5}, {5, 7}}, Shapes{{2, 3, 17}, {17, 4}},
        Shapes{{5}, {5, 3}}, Shapes{{67, 2}, {2, 3}}, Shapes{{0, 3}, {3, 2}}}) {
    for (const Order order : {Order::RowMajor, Order::BatchSlabs}) {
      test::check_derivatives({
          .shapes = {a, b},
          .op = [](const auto& in) { return matmul(in[0], in[1]); },
          .definition =
              [&k = b](const auto& in) { return product(in[0], in[1], k[0], k[1], false); },
          .tolerance = 2e-6,
          .order = order,
      });
    }
  }
}

TEST(Matmul, ShapesThatDoNotFitAreNamed) {
  EXPECT_THAT(
      [] {
        matmul(Tensor::zeros({2, 3}), Tensor::zeros({4, 5}));
      },
      ThrowsMessage<ShapeError>("matmul: needs [..., k] and [k, n], found [2, 3] and [4, 5]"));
  EXPECT_THROW(matmul(Tensor::zeros({2, 3}), Tensor::zeros({3})), ShapeError);
}

TEST(Linear, DerivativesAgreeWithTheDefinition) {
  for (const Shape& x : {Shape{1, 1}, Shape{3, 7}, Shape{2, 3, 17}, Shape{67, 5}}) {
    for (const int64_t out : {1, 4, 13}) {
      for (const Order order : {Order::RowMajor, Order::BatchSlabs}) {
        const auto weight = std::make_shared<Parameter>(Shape{out, x.features()}, Initializer());
        weight->set_name("fc.weight");
        const Tensor w = test::normal_tensor("w", {out, x.features()});
        weight->assign(w);
        const ComplexArray matrix = test::convert<test::Complex>(w.to_vector());
        const auto definition = [&](const ComplexArray& in, const ComplexArray& own,
                                    const ComplexArray& bias) {
          ComplexArray y = product(in, own, x.features(), out, true);
          for (size_t i = 0; i < y.size(); ++i) y[i] += bias[i % bias.size()];
          return y;
        };
        test::check_derivatives({
            .shapes = {x, Shape{out}},
            .op = [&](const auto& in) { return linear(in[0], weight, in[1]); },
            .definition = [&](const auto& in) { return definition(in[0], matrix, in[1]); },
            .tolerance = 2e-6,
            .order = order,
        });
        const auto input = test::convert<test::Complex>(test::normal_values("input0", x.numel()));
        const auto dy = test::convert<double>(test::normal_values("dy", x.batch() * out));
        const auto of_weight = [&](const ComplexArray& own) {
          return product(input, own, x.features(), out, true);
        };
        test::expect_near(weight->gradient().to_vector(), test::complex_step(of_weight, matrix, dy),
                          2e-6, "weight");
      }
    }
  }
}

TEST(Linear, ShapesThatDoNotFitAreNamed) {
  const auto weight = std::make_shared<Parameter>(Shape{3, 5}, Initializer());
  weight->set_name("fc.weight");
  EXPECT_THAT(
      [&] {
        linear(Tensor::zeros({2, 4}), weight, {});
      },
      ThrowsMessage<ShapeError>("linear 'fc.weight': a weight of shape [3, 5] needs inputs "
                                "[..., 5], found [2, 4]"));
  EXPECT_THAT(
      [&] {
        linear(Tensor::zeros({2, 5}), weight, Tensor::zeros({4}));
      },
      ThrowsMessage<ShapeError>(
          "linear 'fc.weight': a weight of shape [3, 5] needs a bias [3], found [4]"));
}

TEST(Bmm, DerivativesAgreeWithTheDefinition) {
  for (const Order order : {Order::RowMajor, Order::BatchSlabs}) {
    test::check_derivatives({
        .shapes = {Shape{3, 2, 5}, Shape{3, 5, 4}},
        .op = [](const auto& in) { return bmm(in[0], in[1]); },
        .definition =
            [](const auto& in) {
              ComplexArray y;
              for (int64_t i = 0; i < 3; ++i) {
                const ComplexArray a(in[0].begin() + i * 10, in[0].begin() + (i + 1) * 10);
                const ComplexArray b(in[1].begin() + i * 20, in[1].begin() + (i + 1) * 20);
                const ComplexArray one = product(a, b, 5, 4, false);
                y.insert(y.end(), one.begin(), one.end());
              }
              return y;
            },
        .tolerance = 2e-6,
        .order = order,
    });
  }
  EXPECT_THAT(
      [] {
        bmm(Tensor::zeros({2, 3, 4}), Tensor::zeros({2, 3, 4}));
      },
      ThrowsMessage<ShapeError>(
          "bmm: needs [count, m, k] and [count, k, n], found [2, 3, 4] and [2, 3, 4]"));
}

}  // namespace
}  // namespace lacuna::matmul_test
