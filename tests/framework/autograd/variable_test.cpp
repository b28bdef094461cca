// Variables whose value is computed when it is asked for.
#include "lacuna/framework/autograd/variable.h"

#include <gtest/gtest.h>

#include <memory>
#include <utility>
#include <vector>

#include "lacuna/framework/autograd/engine.h"
#include "lacuna/framework/autograd/ops/activation.h"
#include "lacuna/framework/autograd/ops/arithmetic.h"
#include "lacuna/framework/autograd/ops/shape.h"

namespace lacuna::variable_test {
namespace {

// Twice a variable; counts how often it was computed.
struct Doubled final : DeferredValue {
  Doubled(Variable x_, int& count_) : x(std::move(x_)), count(count_) {}
  Variable compute() override {
    ++count;
    return scale(x, 2.0f);
  }

  Variable x;
  int& count;
};

class DeferredVariable : public testing::Test {
 protected:
  Variable doubled() {
    return Variable::deferred(x_.shape(), std::make_shared<Doubled>(x_, count_));
  }

  int count_ = 0;
  Variable x_ = Variable::leaf(Tensor::from({3}, std::vector<float>{1.0f, -2.0f, 3.0f}));
};

TEST_F(DeferredVariable, IsNotComputedForItsShapeOrACopy) {
  const Variable y = doubled();
  const Variable copy = y;
  EXPECT_TRUE(copy.defined());
  EXPECT_EQ(copy.shape(), (Shape{3}));
  EXPECT_FALSE(copy.is_leaf());
  EXPECT_EQ(copy.nm(), nullptr);
  EXPECT_NE(copy.deferred_value(), nullptr);
  EXPECT_EQ(count_, 0);
}

TEST_F(DeferredVariable, IsComputedOnceForAllCopies) {
  const Variable y = doubled();
  const Variable copy = y;
  EXPECT_EQ(y.value().to_vector(), (std::vector<float>{2.0f, -4.0f, 6.0f}));
  EXPECT_EQ(copy.deferred_value(), nullptr);
  EXPECT_TRUE(copy.value().shares_storage_with(y.value()));
  EXPECT_EQ(copy.creator(), y.creator());
  EXPECT_TRUE(copy.requires_grad());
  EXPECT_EQ(relu(y).value().to_vector(), (std::vector<float>{2.0f, 0.0f, 6.0f}));
  EXPECT_EQ(count_, 1);
}

TEST_F(DeferredVariable, IsComputedWhenItsGraphIsAskedFor) {
  const Variable y = doubled();
  EXPECT_TRUE(y.requires_grad());
  EXPECT_EQ(count_, 1);
  const Variable z = doubled();
  EXPECT_NE(z.creator(), nullptr);
  EXPECT_EQ(count_, 2);
  const Variable remembered = doubled().without_value();
  EXPECT_EQ(count_, 3);
  EXPECT_NE(remembered.creator(), nullptr);
  EXPECT_EQ(remembered.shape(), (Shape{3}));
}

TEST_F(DeferredVariable, PassesGradientsAsWhatItIsComputedFromDoes) {
  const Variable y = doubled();
  backward(add(multiply(y, y), y), Tensor::full({3}, 1.0f));  // 4 x² + 2 x
  EXPECT_EQ(x_.gradient().to_vector(), (std::vector<float>{10.0f, -14.0f, 26.0f}));
  EXPECT_EQ(count_, 1);
}

TEST_F(DeferredVariable, PassesGradientsWhereItIsTheOutputItself) {
  backward(doubled(), Tensor::full({3}, 1.0f));
  EXPECT_EQ(x_.gradient().to_vector(), std::vector<float>(3, 2.0f));
  EXPECT_EQ(count_, 1);
}

TEST_F(DeferredVariable, OfAConstantIsAConstant) {
  x_ = Variable(Tensor::full({3}, 4.0f));
  const Variable y = doubled();
  EXPECT_FALSE(y.requires_grad());
  EXPECT_EQ(y.value().to_vector(), std::vector<float>(3, 8.0f));
  EXPECT_EQ(count_, 1);
}

TEST_F(DeferredVariable, OfAnotherDeferredOneIsComputedThroughIt) {
  const Variable inner = doubled();
  int outer_count = 0;
  const Variable outer = Variable::deferred({3}, std::make_shared<Doubled>(inner, outer_count));
  EXPECT_EQ(count_, 0);
  EXPECT_EQ(outer.value().to_vector(), (std::vector<float>{4.0f, -8.0f, 12.0f}));
  EXPECT_EQ(inner.value().to_vector(), (std::vector<float>{2.0f, -4.0f, 6.0f}));
  EXPECT_EQ(count_, 1);
  EXPECT_EQ(outer_count, 1);
}

TEST_F(DeferredVariable, IsNeverComputedWhereNobodyAsks) {
  { const Variable y = doubled(); }
  EXPECT_EQ(count_, 0);
}

// Whether an operation records is decided where it stands, not where its value is first looked at.
TEST_F(DeferredVariable, RecordsWhereItWasMadeWhileRecordingIsOn) {
  const Variable y = doubled();
  {
    const NoGrad no_grad;
    EXPECT_EQ(y.value().to_vector(), (std::vector<float>{2.0f, -4.0f, 6.0f}));
  }
  ASSERT_TRUE(y.requires_grad());
  backward(y, Tensor::full({3}, 1.0f));
  EXPECT_EQ(x_.gradient().to_vector(), std::vector<float>(3, 2.0f));
}

TEST_F(DeferredVariable, RecordsNothingWhereItWasMadeWhileRecordingIsOff) {
  const auto unrecorded = [&] {
    const NoGrad no_grad;
    return doubled();
  };
  const Variable y = unrecorded();
  EXPECT_FALSE(y.requires_grad());
  EXPECT_TRUE(grad_enabled());
  EXPECT_EQ(y.value().to_vector(), (std::vector<float>{2.0f, -4.0f, 6.0f}));
}

}  // namespace
}  // namespace lacuna::variable_test
