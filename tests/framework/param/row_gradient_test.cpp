// Gradients of a few rows: joined, laid over each other, and kept so by a parameter.
#include "lacuna/framework/param/row_gradient.h"

#include <gmock/gmock.h>

#include <memory>
#include <vector>

#include "framework/param/parameters.h"
#include "lacuna/framework/core/error.h"
#include "lacuna/framework/layouts/layout.h"

namespace lacuna::row_gradient_test {
namespace {

using testing::ElementsAre;

RowGradient rows_of(std::vector<int64_t> rows, const std::vector<float>& values) {
  const auto count = static_cast<int64_t>(rows.size());
  return {std::move(rows), Tensor::from(Shape{count, 2}, values)};
}

ParameterPtr table() {
  ParameterPtr parameter = named({5, 2}, Initializer::constant(1.0), "wte.weight");
  parameter->sparse_gradient = true;
  return parameter;
}

// Adds `value` to each element of these rows.
void add(Parameter& parameter, const std::vector<int64_t>& rows, float value) {
  parameter.accumulate_rows(rows, [&](std::span<float> gradient, Accumulate accumulate) {
    for (float& g : gradient) g = accumulate == Accumulate::No ? value : g + value;
  });
}

TEST(RowGradient, JoinsRowsOfBothInOrder) {
  RowGradient left = rows_of({1, 4}, {1, 2, 3, 4});
  JoinRowGradients()(left, rows_of({0, 4, 7}, {5, 6, 7, 8, 9, 10}));
  EXPECT_THAT(left.rows, ElementsAre(0, 1, 4, 7));
  EXPECT_THAT(left.values.to_vector(), ElementsAre(5, 6, 1, 2, 10, 12, 9, 10));
  JoinRowGradients()(left, rows_of({}, {}));
  EXPECT_THAT(left.rows, ElementsAre(0, 1, 4, 7));
  RowGradient none = rows_of({}, {});
  JoinRowGradients()(none, rows_of({3}, {1, 2}));
  EXPECT_THAT(none.rows, ElementsAre(3));
}

TEST(RowGradient, GathersAndPutsRows) {
  RowGradient gradient = rows_of({1, 4}, {1, 2, 3, 4});
  const std::vector<int64_t> wanted = {0, 4};
  EXPECT_THAT(gradient.gathered(wanted).to_vector(), ElementsAre(0, 0, 3, 4));
  gradient.put({0, 4}, Tensor::from({2, 2}, std::vector<float>{5, 6, 7, 8}));
  EXPECT_THAT(gradient.rows, ElementsAre(0, 1, 4));
  EXPECT_THAT(gradient.values.to_vector(), ElementsAre(5, 6, 1, 2, 7, 8));
  EXPECT_THAT(gradient.to_dense({5, 2}).to_vector(), ElementsAre(5, 6, 1, 2, 0, 0, 0, 0, 7, 8));
}

TEST(RowGradient, AParameterKeepsTheRowsThatWereUsed) {
  const ParameterPtr parameter = table();
  EXPECT_EQ(parameter->row_gradient(), nullptr);
  add(*parameter, {1, 3}, 2.0f);
  add(*parameter, {0, 3}, 0.5f);
  ASSERT_NE(parameter->row_gradient(), nullptr);
  EXPECT_THAT(parameter->row_gradient()->rows, ElementsAre(0, 1, 3));
  EXPECT_THAT(parameter->row_gradient()->values.to_vector(),
              ElementsAre(0.5f, 0.5f, 2, 2, 2.5f, 2.5f));
  // Three rows and their numbers, and nothing for the others.
  EXPECT_EQ(parameter->byte_counts().gradient, 3 * 2 * 4 + 3 * 8);
  EXPECT_THAT(parameter->gradient().to_vector(),
              ElementsAre(0.5f, 0.5f, 2, 2, 0, 0, 2.5f, 2.5f, 0, 0));
  ASSERT_NE(parameter->row_gradient(), nullptr);
  add(*parameter, {4}, 1.0f);
  EXPECT_THAT(parameter->gradient().to_vector(),
              ElementsAre(0.5f, 0.5f, 2, 2, 0, 0, 2.5f, 2.5f, 1, 1));
  parameter->zero_gradient();
  EXPECT_FALSE(parameter->has_gradient());
  EXPECT_EQ(parameter->row_gradient(), nullptr);
  add(*parameter, {}, 1.0f);
  EXPECT_TRUE(parameter->has_gradient());
  EXPECT_TRUE(parameter->row_gradient()->rows.empty());
}

TEST(RowGradient, WhatIsAddedToAllRowsMakesItWhole) {
  const ParameterPtr parameter = table();
  add(*parameter, {1}, 2.0f);
  parameter->accumulate(Tensor::full({5, 2}, 1.0f));
  EXPECT_EQ(parameter->row_gradient(), nullptr);
  add(*parameter, {4}, 1.0f);
  EXPECT_EQ(parameter->row_gradient(), nullptr);
  EXPECT_THAT(parameter->gradient().to_vector(), ElementsAre(1, 1, 3, 3, 1, 1, 1, 1, 2, 2));
  parameter->zero_gradient();
  add(*parameter, {4}, 1.0f);
  EXPECT_NE(parameter->row_gradient(), nullptr);
  parameter->mutable_gradient().mutable_data()[0] = 7.0f;
  EXPECT_EQ(parameter->row_gradient(), nullptr);
  EXPECT_THAT(parameter->gradient().to_vector(), ElementsAre(7, 0, 0, 0, 0, 0, 0, 0, 1, 1));
}

TEST(RowGradient, OfAMaskedParameterHasNothingOutsideTheMask) {
  const ParameterPtr parameter = table();
  parameter->set_pattern(keeping({5, 2}, {2, 7}));
  add(*parameter, {1, 3}, 2.0f);
  add(*parameter, {3, 4}, 1.0f);
  EXPECT_THAT(parameter->row_gradient()->rows, ElementsAre(1, 3, 4));
  EXPECT_THAT(parameter->row_gradient()->values.to_vector(), ElementsAre(2, 0, 0, 3, 0, 0));
  parameter->set_pattern(keeping({5, 2}, {2, 8}));
  EXPECT_THAT(parameter->gradient().to_vector(), ElementsAre(0, 0, 2, 0, 0, 0, 0, 0, 0, 0));
}

TEST(RowGradient, OfACompressedParameterIsThatOfItsElements) {
  const ParameterPtr parameter = named({5, 2}, Initializer::constant(1.0), "wte.weight");
  parameter->assign(counted({5, 2}));
  parameter->set_pattern(Pattern::make(csr_layout(), {5, 2}, keeping({5, 2}, {2, 3, 7})->mask()));
  add(*parameter, {1, 3}, 2.0f);
  add(*parameter, {3}, 1.0f);
  EXPECT_EQ(parameter->row_gradient(), nullptr);
  EXPECT_THAT(parameter->compacted(parameter->gradient()).to_vector(), ElementsAre(2, 2, 3));
  const std::vector<int64_t> wanted = {3, 1, 0};
  std::vector<float> values(6, -1.0f);
  parameter->read_rows(wanted, values);
  EXPECT_THAT(values, ElementsAre(0, 8, 3, 4, 0, 0));
  EXPECT_THROW(parameter->read_rows(wanted, std::span(values).first(5)), ShapeError);
  EXPECT_THROW(parameter->read_rows(std::vector<int64_t>{3, -1, 0}, values), ShapeError);
}

TEST(RowGradient, ATapSeesAllRows) {
  class Seen final : public GradientTap {
   public:
    void observe(const Tensor& gradient) override { last = gradient.to_vector(); }
    void observe_product(const Tensor&, const Tensor&) override {}
    void reset() override {}
    std::vector<float> last;
  };
  const ParameterPtr parameter = table();
  const auto tap = std::make_shared<Seen>();
  parameter->set_gradient_tap(tap);
  add(*parameter, {1, 3}, 2.0f);
  EXPECT_THAT(tap->last, ElementsAre(0, 0, 2, 2, 0, 0, 2, 2, 0, 0));
  ASSERT_NE(parameter->row_gradient(), nullptr);
  EXPECT_THAT(parameter->row_gradient()->rows, ElementsAre(1, 3));
}

}  // namespace
}  // namespace lacuna::row_gradient_test
