#include "lacuna/layers/add.hpp"

#include <gmock/gmock.h>

#include <vector>

#include "lacuna/framework/autograd/engine.h"
#include "lacuna/framework/autograd/ops/reduce.h"
#include "lacuna/framework/core/error.h"
#include "lacuna/framework/nn/sequential.h"
#include "throws.h"

namespace lacuna {
namespace {

using testing::ElementsAre;

TEST(AddLayer, SumsItsInputs) {
  Add add;
  const Variable a = Variable::leaf(Tensor::from({2}, std::vector<float>{1, 2}));
  const Variable b = Variable::leaf(Tensor::from({2}, std::vector<float>{10, 20}));
  const Variable y = add(std::vector<Variable>{a, b, a});
  EXPECT_THAT(y.value().to_vector(), ElementsAre(12, 24));
  backward(sum(y));
  EXPECT_THAT(a.gradient().to_vector(), ElementsAre(2, 2));
  EXPECT_THAT(b.gradient().to_vector(), ElementsAre(1, 1));
  EXPECT_THAT(add(a).value().to_vector(), ElementsAre(1, 2));
  EXPECT_EQ(add.type(), "add");
}

TEST(AddLayer, RefusesShapesThatDifferAndNoInput) {
  Sequential model;
  auto& add = model.add<Add>("join");
  const std::vector<Variable> inputs{Tensor::zeros({2, 3}), Tensor::zeros({3})};
  expect_throws<ShapeError>([&] { add(inputs); },
                            "layer 'join' (add): its inputs have shapes [2, 3] and [3]");
  expect_throws<ShapeError>([&] { add(std::vector<Variable>()); },
                            "layer 'join' (add) needs an input");
}

}  // namespace
}  // namespace lacuna
