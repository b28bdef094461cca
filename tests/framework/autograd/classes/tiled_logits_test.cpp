#include "lacuna/framework/autograd/classes/tiled_logits.hpp"

#include <gmock/gmock.h>

#include <algorithm>
#include <memory>

#include "framework/autograd/derivatives.h"
#include "lacuna/framework/config/named_tensors.h"
#include "lacuna/framework/core/error.h"
#include "lacuna/framework/core/parallel.h"
#include "throws.h"

namespace lacuna::tiled_logits_test {
namespace {

constexpr int64_t kNone = kIgnoredLabel;

// Example 0 has three labels, 1 has none, the others one or two.
IndexTensor label_lists(int64_t examples, int64_t classes) {
  std::vector<int64_t> lists;
  for (int64_t i = 0; i < examples; ++i) {
    const int64_t count = i == 0 ? 3 : i == 1 ? 0 : 1 + i % 2;
    for (int64_t l = 0; l < 3; ++l) lists.push_back(l < count ? (5 * i + 4 * l) % classes : kNone);
  }
  return IndexTensor(Shape{examples, 3}, std::move(lists));
}

test::Complex loss_of(const test::ComplexArray& logits, const IndexTensor& lists, int64_t classes) {
  test::Complex total = 0.0;
  double labelled = 0.0;
  for (int64_t i = 0; i < lists.shape()[0]; ++i) {
    test::Complex sum = 0.0, of_labels = 0.0;
    double count = 0.0;
    for (int64_t c = 0; c < classes; ++c) {
      sum += std::exp(logits[static_cast<size_t>(i * classes + c)]);
    }
    for (int64_t l = 0; l < 3; ++l) {
      const int64_t label = lists.values()[static_cast<size_t>(3 * i + l)];
      if (label == kNone) continue;
      of_labels += logits[static_cast<size_t>(i * classes + label)];
      ++count;
    }
    if (count == 0.0) continue;
    total += std::log(sum) - of_labels / count;
    ++labelled;
  }
  return total / labelled;
}

TEST(MultiLabelCrossEntropy, DerivativesAgreeWithTheDefinition) {
  for (const Shape& shape : {Shape{2, 13}, Shape{5, 13}, Shape{67, 17}}) {
    for (const Order order : {Order::RowMajor, Order::BatchSlabs}) {
      const IndexTensor lists = label_lists(shape[0], shape[1]);
      test::check_derivatives({
          .shapes = {shape},
          .op = [&](const auto& in) { return multi_label_cross_entropy(in[0], lists); },
          .definition =
              [&](const auto& in) { return test::ComplexArray{loss_of(in[0], lists, shape[1])}; },
          .spread = 3.0,
          .tolerance = 2e-6,
          .order = order,
      });
    }
  }
}

// A last layer of 23 classes in three tiles, in some layout.
struct Head {
  explicit Head(const Layout* layout, bool has_bias = true) {
    for (const int64_t rows : {9, 9, 5}) {
      const std::string name = std::to_string(weights.size());
      weights.push_back(std::make_shared<Parameter>(Shape{rows, 6}, Initializer::normal(1.0)));
      weights.back()->set_name("classes." + name + ".weight");
      weights.back()->use = WeightUse::Linear;
      if (layout != nullptr) {
        BitMask mask = BitMask::zeros(rows * 6);
        for (int64_t i = 0; i < rows * 6; ++i) {
          if (i % 3 != 1) mask.set(i);
        }
        weights.back()->set_pattern(Pattern::make(*layout, weights.back()->shape(), mask));
      }
      if (!has_bias) continue;
      biases.push_back(std::make_shared<Parameter>(Shape{rows}, Initializer::normal(1.0)));
      biases.back()->set_name("classes." + name + ".bias");
    }
  }

  Variable operator()(const Variable& x) const {
    std::vector<ClassTile> tiles;
    for (size_t t = 0; t < weights.size(); ++t) {
      tiles.push_back({.weight = weights[t]->as_weight(weights[t]),
                       .bias = biases.empty() ? Variable() : Variable::of(biases[t])});
    }
    return tiled_logits(x, std::move(tiles));
  }

  std::vector<ParameterPtr> weights, biases;
};

void expect_same_gradients(const Head& a, const Head& b, double tolerance) {
  for (size_t t = 0; t < a.weights.size(); ++t) {
    const std::vector<float> expected = b.weights[t]->gradient().to_vector();
    test::expect_near(a.weights[t]->gradient().to_vector(), {expected.begin(), expected.end()},
                      tolerance, a.weights[t]->name());
  }
  for (size_t t = 0; t < a.biases.size(); ++t) {
    const std::vector<float> expected = b.biases[t]->gradient().to_vector();
    test::expect_near(a.biases[t]->gradient().to_vector(), {expected.begin(), expected.end()},
                      tolerance, a.biases[t]->name());
  }
}

TEST(TiledLogits, GiveTheLossAndGradientsOfWholeLogits) {
  for (const Layout* layout :
       {static_cast<const Layout*>(nullptr), &masked_layout(), &csr_layout()}) {
    for (const int64_t batch : {1, 2, 5, 70}) {
      for (const bool has_bias : {true, false}) {
        const Head tiled(layout, has_bias), whole(layout, has_bias);
        const Tensor values = test::normal_tensor("x", Shape{batch, 6});
        const Variable x = Variable::leaf(values), y = Variable::leaf(values);
        const IndexTensor lists = label_lists(batch, 23);
        const Variable loss = multi_label_cross_entropy(tiled(x), lists);
        const Variable logits = whole(y);
        EXPECT_EQ(logits.value().shape(),
                  (Shape{batch, 23}));  // computed, and so no longer in tiles
        const Variable expected = multi_label_cross_entropy(logits, lists);
        EXPECT_NEAR(loss.value().item(), expected.value().item(), 2e-6);
        backward(loss);
        backward(expected);
        const std::vector<float> dy = y.gradient().to_vector();
        test::expect_near(x.gradient().to_vector(), {dy.begin(), dy.end()}, 2e-6, "dx");
        expect_same_gradients(tiled, whole, 2e-6);
      }
    }
  }
}

TEST(TiledLogits, TheLargestAreThoseOfWholeLogits) {
  const Head head(&csr_layout());
  const Variable x = test::normal_tensor("x", Shape{70, 6});
  const LargestLogits tiled = largest_logits(head(x), 5);
  const Variable whole = head(x);
  whole.value();
  const LargestLogits expected = largest_logits(whole, 5);
  EXPECT_EQ(tiled.classes, expected.classes);
  EXPECT_EQ(tiled.logits, expected.logits);
}

TEST(TiledLogits, AFrozenTileGetsNoGradient) {
  const Head head(&csr_layout());
  std::vector<ClassTile> tiles;
  for (size_t t = 0; t < head.weights.size(); ++t) {
    tiles.push_back({.weight = head.weights[t]->as_weight(t == 1 ? nullptr : head.weights[t]),
                     .bias = Variable()});
  }
  const Variable x = test::normal_tensor("x", Shape{4, 6});
  backward(multi_label_cross_entropy(tiled_logits(x, tiles), label_lists(4, 23)));
  EXPECT_TRUE(head.weights[0]->has_gradient());
  EXPECT_FALSE(head.weights[1]->has_gradient());
  EXPECT_TRUE(head.weights[2]->has_gradient());
}

TEST(TiledLogits, AreTheSameForAnyNumberOfThreads) {
  const int before = num_threads();
  std::vector<std::vector<float>> gradients;
  for (const int threads : {1, 3}) {
    set_num_threads(threads);
    const Head head(&csr_layout());
    const Variable x = Variable::leaf(test::normal_tensor("x", Shape{200, 6}));
    backward(multi_label_cross_entropy(head(x), label_lists(200, 23)));
    gradients.push_back(x.gradient().to_vector());
    gradients.push_back(head.weights[0]->gradient().to_vector());
  }
  set_num_threads(before);
  EXPECT_EQ(gradients[0], gradients[2]);
  EXPECT_EQ(gradients[1], gradients[3]);
}

TEST(MultiLabelCrossEntropy, WithoutLabelsIsZeroAndHasNoGradient) {
  const Variable logits = Variable::leaf(test::normal_tensor("logits", Shape{2, 4}));
  const Variable loss = multi_label_cross_entropy(logits, IndexTensor(Shape{2, 1}, {kNone, kNone}));
  EXPECT_EQ(loss.value().item(), 0.0f);
  backward(loss);
  EXPECT_EQ(logits.gradient().to_vector(), std::vector<float>(8, 0.0f));
}

TEST(MultiLabelCrossEntropy, RefusesWhatDoesNotFit) {
  const Variable logits = test::normal_tensor("logits", Shape{2, 4});
  expect_throws<DataError>(
      [&] {
        multi_label_cross_entropy(logits, IndexTensor(Shape{2, 2}, {0, kNone, 1, 4}));
      },
      "label 4 of example 1 is out of range: there are 4 classes");
  expect_throws<ShapeError>(
      [&] {
        multi_label_cross_entropy(logits, IndexTensor(Shape{3, 1}, {0, 1, 2}));
      },
      "found [2, 4] and [3, 1]");
  const Head head(nullptr);
  expect_throws<ShapeError>(
      [&] {
        head(test::normal_tensor("x", Shape{2, 5}));
      },
      "a weight of shape [9, 6] needs inputs [batch, 6], found [2, 5]");
}

}  // namespace
}  // namespace lacuna::tiled_logits_test
