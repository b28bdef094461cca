#include "lacuna/sparsity/masks/mask_init.h"

#include <gtest/gtest.h>

#include "throws.h"

namespace lacuna::mask_init_test {
namespace {

ParameterPtr parameter(const Shape& shape, std::string name = "fc1.weight") {
  auto p = std::make_shared<Parameter>(shape, Initializer::uniform(1.0));
  p->set_name(std::move(name));
  return p;
}

TEST(InitMethod, RandomIsExactAndKeyedBySeedAndName) {
  const ParameterPtr p = parameter(Shape{30, 40}), q = parameter(Shape{30, 40}, "other.weight");
  const auto mask = [](const ParameterPtr& w, uint64_t seed) {
    return InitMethod("random").make(
        {.parameter = *w, .sparsity = 0.9f, .nnz = 120, .groups = {}, .seed = seed});
  };
  EXPECT_EQ(mask(p, 1).count(), 120);
  EXPECT_TRUE(mask(p, 1) == mask(p, 1));
  EXPECT_FALSE(mask(p, 1) == mask(p, 2));
  EXPECT_FALSE(mask(p, 1) == mask(q, 1));
}

TEST(InitMethod, TopkKeepsTheLargestMagnitudes) {
  const ParameterPtr p = parameter(Shape{1, 4});
  p->assign(Tensor::from(Shape{1, 4}, std::vector<float>{-3, 1, 2, -0.5f}));
  const MaskSet mask = InitMethod("topk").make(
      {.parameter = *p, .sparsity = 0.5f, .nnz = 2, .groups = {}, .seed = 0});
  EXPECT_EQ(mask.bits().to_bytes(), (std::vector<uint8_t>{1, 0, 1, 0}));
}

TEST(InitMethod, FromZerosIgnoresTheSparsity) {
  const ParameterPtr p = parameter(Shape{1, 4});
  p->assign(Tensor::from(Shape{1, 4}, std::vector<float>{-3, 0, 2, 0}));
  const MaskSet mask =
      InitMethod("from_zeros")
          .make({.parameter = *p, .sparsity = 0.99f, .nnz = 0, .groups = {}, .seed = 0});
  EXPECT_EQ(mask.bits().to_bytes(), (std::vector<uint8_t>{1, 0, 1, 0}));
}

TEST(InitMethod, InheritIsTheMaskThatThereIs) {
  const ParameterPtr p = parameter(Shape{1, 4});
  const MaskInitRequest request{
      .parameter = *p, .sparsity = 0.75f, .nnz = 1, .groups = {}, .seed = 0};
  const std::vector<uint8_t> mask{1, 0, 1, 0};
  p->set_pattern(Pattern::masked(Shape{1, 4}, BitMask::from_bytes(mask)));
  p->assign(Tensor::from(Shape{1, 4}, std::vector<float>{-3, 0, 0, 0}));  // a zero that is trained
  EXPECT_EQ(InitMethod("inherit").make(request).bits().to_bytes(), mask);
}

TEST(InitMethod, CustomFunctionMustFit) {
  const ParameterPtr p = parameter(Shape{2, 2});
  const MaskInitRequest request{
      .parameter = *p, .sparsity = 0.5f, .nnz = 2, .groups = {}, .seed = 0};
  const InitMethod diagonal([](const MaskInitRequest&) {
    return BitMask::from_bytes(std::vector<uint8_t>{1, 0, 0, 1});
  });
  EXPECT_EQ(diagonal.make(request).count(), 2);
  const InitMethod wrong([](const MaskInitRequest&) { return BitMask::ones(3); });
  expect_throws<ShapeError>(
      [&] { wrong.make(request); },
      "made a mask of 3 positions for parameter 'fc1.weight' of shape [2, 2]");
}

TEST(InitMethod, UnknownNameSuggestsTheNearest) {
  expect_throws<ConfigError>([] { InitMethod("topkk"); }, "did you mean 'topk'?");
}

TEST(CheckerboardMask, EdgeSizes) {
  EXPECT_EQ(checkerboard_mask(3, 5, 0.0f).count(), 15);
  EXPECT_EQ(checkerboard_mask(3, 5, 1.0f).count(), 0);
  EXPECT_EQ(checkerboard_mask(0, 5, 0.5f).count(), 0);
  EXPECT_EQ(checkerboard_mask(5, 0, 0.5f).shape(), (Shape{5, 0}));
}

}  // namespace
}  // namespace lacuna::mask_init_test
