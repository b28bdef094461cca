// Distillation: the teacher's part of a loss.
#include <gmock/gmock.h>

#include <cmath>
#include <limits>

#include "framework/autograd/derivatives.h"
#include "lacuna/framework/autograd/engine.h"
#include "lacuna/framework/autograd/ops/loss.h"
#include "lacuna/framework/core/error.h"
#include "lacuna/framework/kernels/rowwise/loss_reference.hpp"

namespace lacuna::distillation_loss_test {
namespace {

using test::ComplexArray;

TEST(DistillationLossOp, DerivativesAgreeWithTheDefinition) {
  const Shape shape{2, 3, 5};
  std::vector<float> teacher(30);
  for (size_t i = 0; i < teacher.size(); ++i) teacher[i] = static_cast<float>(i * 13 % 7) - 3.0f;
  const auto softened = [](const auto* x, double temperature) {
    std::vector<test::Complex> p(5);
    test::Complex total = 0.0;
    for (size_t j = 0; j < 5; ++j) total += p[j] = std::exp(test::Complex(x[j]) / temperature);
    for (test::Complex& value : p) value /= total;
    return p;
  };
  for (const double temperature : {1.0, 4.0}) {
    test::check_derivatives({
        .shapes = {shape},
        .op =
            [&](const auto& in) {
              return distillation_loss(in[0], Tensor::from(shape, teacher), temperature);
            },
        .definition =
            [&](const auto& in) {
              test::Complex total = 0.0;
              for (size_t row = 0; row < 6; ++row) {
                const auto p = softened(teacher.data() + row * 5, temperature),
                           q = softened(in[0].data() + row * 5, temperature);
                for (size_t j = 0; j < 5; ++j) total += p[j] * (std::log(p[j]) - std::log(q[j]));
              }
              return ComplexArray{temperature * temperature * total / 6.0};
            },
        .spread = 3.0,
        .tolerance = 1e-5,
    });
  }
}

TEST(DistillationLossOp, LeavesOutMaskedRows) {
  const Shape whole{2, 3, 4}, kept{1, 4, 4};
  std::vector<float> x(24), t(24), kept_x, kept_t;
  const IndexTensor mask(Shape{2, 3}, {1, 0, 1, 1, 1, 0});
  for (size_t i = 0; i < 24; ++i) {
    x[i] = static_cast<float>(i * 7 % 11) - 5.0f;
    t[i] = static_cast<float>(i * 5 % 9) - 4.0f;
    if (mask.values()[i / 4] == 0) continue;
    kept_x.push_back(x[i]);
    kept_t.push_back(t[i]);
  }
  const Variable logits = Variable::leaf(Tensor::from(whole, x)),
                 alone = Variable::leaf(Tensor::from(kept, kept_x));
  const Variable loss = distillation_loss(logits, Tensor::from(whole, t), 2.0, mask),
                 expected = distillation_loss(alone, Tensor::from(kept, kept_t), 2.0);
  EXPECT_EQ(loss.value().item(), expected.value().item());
  backward(loss);
  backward(expected);
  std::vector<float> gradient = alone.gradient().to_vector();
  for (const ptrdiff_t row : {1, 5}) gradient.insert(gradient.begin() + row * 4, 4, 0.0f);
  EXPECT_EQ(logits.gradient().to_vector(), gradient);
  const IndexTensor none(Shape{2, 3}, std::vector<int64_t>(6, 0));
  const Variable nothing = distillation_loss(logits, Tensor::from(whole, t), 2.0, none);
  EXPECT_EQ(nothing.value().item(), 0.0f);
}

TEST(DistillationLossOp, AClassThatTheTeacherExcludesCostsNothing) {
  const float none = -std::numeric_limits<float>::infinity();
  const Tensor teacher = Tensor::from(Shape{1, 3}, std::vector<float>{0.5f, none, 0.5f});
  const Variable logits = Tensor::from(Shape{1, 3}, std::vector<float>{1.0f, 1.0f, 1.0f});
  EXPECT_NEAR(distillation_loss(logits, teacher, 1.0).value().item(), std::log(1.5), 1e-6);
}

TEST(DistillationLossOp, BadInputIsNamed) {
  const Variable logits = Tensor::full(Shape{2, 3}, 0.5f);
  EXPECT_THROW(distillation_loss(logits, logits.value(), 1.0, IndexTensor(Shape{3}, {1, 1, 1})),
               ShapeError);
  EXPECT_THROW(distillation_loss(logits, Tensor::full(Shape{3, 2}, 0.5f), 1.0), ShapeError);
  EXPECT_THROW(distillation_loss(logits, logits.value(), 0.0), ConfigError);
  EXPECT_EQ(distillation_loss(logits, logits.value(), 2.0).value().item(), 0.0f);
}

}  // namespace
}  // namespace lacuna::distillation_loss_test
