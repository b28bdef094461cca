#include "lacuna/framework/nn/sequential.h"

#include <gtest/gtest.h>

#include "lacuna/framework/autograd/ops/arithmetic.h"

namespace lacuna::sequential_test {
namespace {

class Times final : public Module {
 public:
  struct Options {
    float factor = 2.0f;
  };
  explicit Times(const Options& options) : options_(options) {}
  std::string_view type() const override { return "times"; }
  Shape output_shape(const Shape& input) const override {
    return input.with_features(input.features() + 1);
  }

 protected:
  Variable forward(const Variable& input) override { return scale(input, options_.factor); }

 private:
  Options options_;
};

TEST(Sequential, RunsItsChildrenInOrder) {
  Sequential model;
  EXPECT_EQ(model(Tensor::scalar(1.0f)).value().item(), 1.0f);
  EXPECT_EQ(model.output_shape({4}), (Shape{4}));
  model.add<Times>("twice");
  model.add<Times>("thrice", {.factor = 3.0f});
  EXPECT_EQ(model(Tensor::scalar(1.0f)).value().item(), 6.0f);
  EXPECT_EQ(model.output_shape({4}), (Shape{6}));
  EXPECT_EQ(model.type(), "sequential");
  EXPECT_EQ(model.description(), "");
  EXPECT_EQ(Sequential({.description = "template: block"}).description(), "template: block");
  EXPECT_EQ(model.children()[1].second->path(), "thrice");
}

}  // namespace
}  // namespace lacuna::sequential_test
