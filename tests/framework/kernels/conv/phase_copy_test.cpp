#include "lacuna/framework/kernels/conv/phase_copy.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "framework/kernels/conv/convolution_sizes.h"
#include "framework/kernels/test_values.h"
#include "lacuna/framework/core/tensor.h"

namespace lacuna::phase_copy_test {
namespace {

constexpr auto kWidth = static_cast<size_t>(kImageSlabWidth);

// Planes that no kernel has written yet.
std::vector<float> planes_for(const Planes& planes, int64_t count) {
  return std::vector<float>(static_cast<size_t>(planes.slab_lines(count)) * kWidth, NAN);
}

size_t float_of(const Planes& planes, int64_t plane, int64_t row, int64_t column) {
  return static_cast<size_t>(planes.lead_lines + plane * planes.plane_lines +
                             row * planes.row_lines + column) *
         kWidth;
}

// Those of the sizes whose input is copied, forward (`x_is_tensor`) or as a gradient.
std::vector<ConvolutionShape> copied_sizes(bool ConvPlan::*is_tensor) {
  std::vector<ConvolutionShape> sizes = test::convolution_sizes();
  std::erase_if(sizes, [&](const ConvolutionShape& s) { return make_conv_plan(s).*is_tensor; });
  EXPECT_GT(sizes.size(), 50u);
  return sizes;
}

TEST(SplitPhases, TakesEveryPixelToItsPhaseAndZeroesTheRest) {
  for (const ConvolutionShape& s : copied_sizes(&ConvPlan::x_is_tensor)) {
    SCOPED_TRACE(test::name_of_sizes(s));
    const ConvPlan plan = make_conv_plan(s);
    const Tensor x = test::normal_tensor("x", s.input_shape()).to(Order::ImageSlabs);
    const ImageSlabs at(x.shape());
    const float* slab = x.data(Order::ImageSlabs);
    std::vector<float> planes = planes_for(plan.x, plan.input_planes());
    split_phases(planes_of(at), s.in_channels, s.window.stride, plan.phases, plan.x, slab,
                 planes.data());
    const auto phases = static_cast<int64_t>(plan.phases.size());
    std::vector<float> expected(planes.size(), 0.0f);
    for (int64_t channel = 0; channel < s.in_channels; ++channel) {
      for (int64_t p = 0; p < phases; ++p) {
        const PixelPhase& phase = plan.phases[static_cast<size_t>(p)];
        for (int64_t row = 0; phase.row + row * s.window.stride.height < s.image.height; ++row) {
          for (int64_t column = 0; phase.column + column * s.window.stride.width < s.image.width;
               ++column) {
            const float* pixel =
                slab + at.line(0, channel, phase.row + row * s.window.stride.height,
                               phase.column + column * s.window.stride.width);
            std::copy_n(pixel, kWidth,
                        expected.begin() + static_cast<int64_t>(float_of(
                                               plan.x, channel * phases + p, row, column)));
          }
        }
      }
    }
    EXPECT_EQ(planes, expected);
  }
}

TEST(JoinPhases, IsTheWayBack) {
  for (const ConvolutionShape& s : copied_sizes(&ConvPlan::x_is_tensor)) {
    SCOPED_TRACE(test::name_of_sizes(s));
    const ConvPlan plan = make_conv_plan(s);
    const Tensor x = test::normal_tensor("x", s.input_shape()).to(Order::ImageSlabs);
    const ImageSlabs at(x.shape());
    std::vector<float> planes = planes_for(plan.x, plan.input_planes());
    split_phases(planes_of(at), s.in_channels, s.window.stride, plan.phases, plan.x,
                 x.data(Order::ImageSlabs), planes.data());
    Tensor joined = Tensor::empty(x.shape(), Order::ImageSlabs);
    join_phases(planes_of(at), s.in_channels, s.window.stride, plan.phases, plan.x, planes.data(),
                joined.mutable_data(Order::ImageSlabs));
    // Pixels of phases that no tap reads have no plane.
    const Extent stride = s.window.stride;
    Tensor expected = x.clone();
    for (int64_t channel = 0; channel < s.in_channels; ++channel) {
      for (int64_t pixel = 0; pixel < s.image.height * s.image.width; ++pixel) {
        const int64_t row = pixel / s.image.width, column = pixel % s.image.width;
        const bool is_read = std::ranges::any_of(plan.phases, [&](const PixelPhase& phase) {
          return phase.row == row % stride.height && phase.column == column % stride.width;
        });
        float* line = expected.mutable_data(Order::ImageSlabs) + at.line(0, channel, row, column);
        if (!is_read) std::fill_n(line, kWidth, 0.0f);
      }
    }
    EXPECT_EQ(joined.to_vector(), expected.to_vector());
  }
}

// Of planes whose gaps hold what a gather left there, as input gradients are written.
TEST(JoinPhases, LeavesBordersAndTakesNothingFromGaps) {
  for (const ConvolutionShape& s : copied_sizes(&ConvPlan::dx_is_tensor)) {
    SCOPED_TRACE(test::name_of_sizes(s));
    const ConvPlan plan = make_conv_plan(s);
    const ImageSlabs at(s.input_shape());
    std::vector<float> planes = planes_for(plan.dx, plan.gradient_planes());
    for (int64_t plane = 0; plane < plan.gradient_planes(); ++plane) {
      for (int64_t row = 0; row < plan.dx.height; ++row) {
        for (int64_t column = 0; column < plan.dx.width; ++column) {
          std::fill_n(planes.begin() + static_cast<int64_t>(float_of(plan.dx, plane, row, column)),
                      kWidth, 2.0f);
        }
      }
    }
    std::vector<float> slab(static_cast<size_t>(at.slab_lines()) * kWidth, 7.0f);
    join_phases(planes_of(at), s.in_channels, s.window.stride, plan.phases, plan.dx, planes.data(),
                slab.data());
    const Tensor pixels = Tensor::full({16, s.in_channels, s.image.height, s.image.width}, 1.0f)
                              .to(Order::ImageSlabs);
    int64_t wrong = 0;
    for (size_t i = 0; i < slab.size(); ++i) {
      const bool is_pixel = pixels.storage()[i] == 1.0f;
      wrong += is_pixel ? slab[i] != 2.0f && slab[i] != 0.0f : slab[i] != 7.0f;
    }
    EXPECT_EQ(wrong, 0);
  }
}

}  // namespace
}  // namespace lacuna::phase_copy_test
