#include "lacuna/framework/kernels/pointwise/optimizer_update.hpp"

#include <gmock/gmock.h>

#include <cmath>
#include <vector>

#include "lacuna/framework/core/parallel.h"
#include "lacuna/framework/core/random.h"
#include "lacuna/framework/kernels/pointwise/optimizer_update_reference.hpp"

namespace lacuna::optimizer_update_test {
namespace {

// Everything an update touches, filled with numbers of mixed sizes.
template <class T>
struct Arrays {
  std::vector<T> values, gradient, first, second;

  explicit Arrays(size_t size) {
    const CounterRng rng(1, "optimizer_update");
    for (size_t i = 0; i < size; ++i) {
      values.push_back(static_cast<float>(rng.normal(4 * i)));
      gradient.push_back(static_cast<float>(rng.normal(4 * i + 1) * 0.1));
      first.push_back(static_cast<float>(rng.normal(4 * i + 2) * 0.1));
      second.push_back(static_cast<float>(std::abs(rng.normal(4 * i + 3)) * 0.01));
    }
  }
};

std::vector<size_t> sizes() {
  std::vector<size_t> all{1000, 16384 + 3};  // the last: more than one block
  for (size_t size = 0; size <= 70; ++size) all.push_back(size);
  return all;
}

// Float results differ from the exact ones by a few roundings of terms that are below 2 here.
constexpr double kTolerance = 4 * 2.4e-7;

void expect_near(const std::vector<float>& actual, const std::vector<double>& expected) {
  ASSERT_EQ(actual.size(), expected.size());
  for (size_t i = 0; i < actual.size(); ++i) {
    ASSERT_NEAR(actual[i], expected[i], kTolerance * std::max(1.0, std::abs(expected[i])))
        << "element " << i << " of " << actual.size();
  }
}

const SgdCoefficients kSgd{
    .learning_rate = 0.1f, .weight_decay = 0.01f, .momentum = 0.9f, .gradient_scale = 0.7f};
const AdamCoefficients kAdam{.retain = 0.999f,
                             .l2 = 0.02f,
                             .beta1 = 0.9f,
                             .one_minus_beta1 = 0.1f,
                             .beta2 = 0.99f,
                             .one_minus_beta2 = 0.01f,
                             .step_size = 0.05f,
                             .root_scale = 3.0f,
                             .eps = 1e-6f};

TEST(SgdUpdate, AgreesWithTheReferenceForEverySize) {
  for (const bool is_nesterov : {false, true}) {
    SgdCoefficients c = kSgd;
    c.is_nesterov = is_nesterov;
    for (const size_t size : sizes()) {
      Arrays<float> x(size);
      Arrays<double> exact(size);
      sgd_update(c, x.values, x.gradient, x.first);
      sgd_update_reference<double>(c, exact.values, exact.gradient, exact.first);
      expect_near(x.values, exact.values);
      expect_near(x.first, exact.first);
      EXPECT_EQ(x.gradient, Arrays<float>(size).gradient);
    }
  }
}

TEST(SgdUpdate, WithoutABufferIsPlainDescent) {
  for (const size_t size : sizes()) {
    Arrays<float> x(size);
    Arrays<double> exact(size);
    sgd_update(kSgd, x.values, x.gradient, {});
    sgd_update_reference<double>(kSgd, exact.values, exact.gradient, {});
    expect_near(x.values, exact.values);
  }
}

TEST(AdamUpdate, AgreesWithTheReferenceForEverySize) {
  for (const size_t size : sizes()) {
    Arrays<float> x(size);
    Arrays<double> exact(size);
    adam_update(kAdam, x.values, x.gradient, x.first, x.second);
    adam_update_reference<double>(kAdam, exact.values, exact.gradient, exact.first, exact.second);
    expect_near(x.values, exact.values);
    expect_near(x.first, exact.first);
    expect_near(x.second, exact.second);
  }
}

TEST(AdamUpdate, TheFloatReferenceIsARoundingFromTheExactOne) {
  Arrays<float> x(71);
  Arrays<double> exact(71);
  adam_update_reference<float>(kAdam, x.values, x.gradient, x.first, x.second);
  adam_update_reference<double>(kAdam, exact.values, exact.gradient, exact.first, exact.second);
  expect_near(x.values, exact.values);
}

TEST(OptimizerUpdate, AnElementDoesNotDependOnItsPlace) {
  // The last 13 of 77 fall into the partial vector or not, by where the span begins.
  Arrays<float> whole(77), part(77);
  adam_update(kAdam, whole.values, whole.gradient, whole.first, whole.second);
  const auto tail = [](std::vector<float>& v) { return std::span<float>(v).last(13); };
  adam_update(kAdam, tail(part.values), tail(part.gradient), tail(part.first), tail(part.second));
  EXPECT_THAT(std::vector<float>(part.values.end() - 13, part.values.end()),
              testing::ElementsAreArray(whole.values.end() - 13, whole.values.end()));
}

TEST(OptimizerUpdate, DoesNotDependOnTheThreads) {
  const int saved = num_threads();
  std::vector<std::vector<float>> values;
  std::vector<double> squares;
  for (const int threads : {1, 2, 5}) {
    set_num_threads(threads);
    Arrays<float> x(100003);
    sgd_update(kSgd, x.values, x.gradient, x.first);
    adam_update(kAdam, x.values, x.gradient, x.first, x.second);
    values.push_back(x.values);
    squares.push_back(sum_of_squares(x.values));
  }
  set_num_threads(saved);
  EXPECT_EQ(values[1], values[0]);
  EXPECT_EQ(values[2], values[0]);
  EXPECT_EQ(squares[1], squares[0]);
  EXPECT_EQ(squares[2], squares[0]);
}

TEST(SumOfSquares, IsExactInDoubleWhereFloatWouldNotBe) {
  EXPECT_EQ(sum_of_squares({}), 0.0);
  for (const size_t size : sizes()) {
    std::vector<float> values(size, 3.0f);
    EXPECT_EQ(sum_of_squares(values), 9.0 * static_cast<double>(size));
  }
  EXPECT_EQ(sum_of_squares(std::vector<float>{1e30f, 1.0f}), double{1e30f} * double{1e30f} + 1.0);
}

TEST(Scale, MultipliesEveryElement) {
  for (const size_t size : sizes()) {
    std::vector<float> values(size, 3.0f);
    scale(0.5f, values);
    EXPECT_THAT(values, testing::Each(1.5f));
  }
}

}  // namespace
}  // namespace lacuna::optimizer_update_test
