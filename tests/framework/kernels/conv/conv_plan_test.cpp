// Plans of convolutions: every line that a gather reads is the pixel that the definition names, or
// a line that no pixel lies in.
#include "lacuna/framework/kernels/conv/conv_plan.hpp"

#include <gtest/gtest.h>

#include <set>
#include <string>
#include <vector>

#include "framework/kernels/conv/convolution_sizes.h"
#include "lacuna/framework/core/error.h"
#include "throws.h"

namespace lacuna::conv_plan_test {
namespace {

int64_t line_of(const Planes& planes, int64_t plane, int64_t row, int64_t column) {
  return planes.lead_lines + plane * planes.plane_lines + row * planes.row_lines + column;
}

bool contains(Extent size, int64_t row, int64_t column) {
  return row >= 0 && row < size.height && column >= 0 && column < size.width;
}

void expect_equal(const Planes& a, const Planes& b) {
  EXPECT_EQ(a.height, b.height);
  EXPECT_EQ(a.width, b.width);
  EXPECT_EQ(a.row_lines, b.row_lines);
  EXPECT_EQ(a.plane_lines, b.plane_lines);
  EXPECT_EQ(a.lead_lines, b.lead_lines);
}

// The lines of a slab in which some pixel lies.
std::set<int64_t> lines_of_images(const Planes& planes, int64_t count, Extent size) {
  std::set<int64_t> lines;
  for (int64_t plane = 0; plane < count; ++plane) {
    for (int64_t row = 0; row < size.height; ++row) {
      for (int64_t column = 0; column < size.width; ++column) {
        EXPECT_TRUE(lines.insert(line_of(planes, plane, row, column)).second);
      }
    }
  }
  return lines;
}

// The same of phases, of which the last rows and columns may lie outside of the image.
std::set<int64_t> lines_of_phases(const ConvPlan& plan, const Planes& planes) {
  std::set<int64_t> lines;
  const Extent stride = plan.shape.window.stride;
  for (int64_t plane = 0; plane < plan.input_planes(); ++plane) {
    const PixelPhase& phase = plan.phases[static_cast<size_t>(plane) % plan.phases.size()];
    for (int64_t row = 0; row < planes.height; ++row) {
      for (int64_t column = 0; column < planes.width; ++column) {
        const bool is_pixel = contains(plan.shape.image, phase.row + row * stride.height,
                                       phase.column + column * stride.width);
        if (!is_pixel) continue;
        EXPECT_TRUE(lines.insert(line_of(planes, plane, row, column)).second);
      }
    }
  }
  return lines;
}

// Pixels of a plane of this size, displaced by what a tap reads, lie in the slab.
void expect_pixels_in_slab(const Planes& planes, int64_t count_of_planes, int64_t row,
                           int64_t column, Extent size) {
  EXPECT_GE(line_of(planes, 0, row, column), 0);
  EXPECT_LT(line_of(planes, count_of_planes - 1, size.height - 1 + row, size.width - 1 + column),
            planes.slab_lines(count_of_planes));
}

TEST(ConvPlan, TapsReadThePixelsOfTheDefinition) {
  for (const ConvolutionShape& s : test::convolution_sizes()) {
    SCOPED_TRACE(test::name_of_sizes(s));
    const ConvPlan plan = make_conv_plan(s);
    const Window& w = s.window;
    ASSERT_EQ(plan.output, s.output());
    ASSERT_EQ(plan.places.size(), static_cast<size_t>(s.taps()));
    const std::set<int64_t> pixels = plan.x_is_tensor
                                         ? lines_of_images(plan.x, s.in_channels, s.image)
                                         : lines_of_phases(plan, plan.x);
    EXPECT_EQ(plan.x_step, plan.x_is_tensor ? w.stride : (Extent{1, 1}));
    const int64_t planes = plan.input_planes() / s.in_channels;
    const Extent last{(plan.output.height - 1) * plan.x_step.height + 1,
                      (plan.output.width - 1) * plan.x_step.width + 1};
    int64_t wrong = 0;
    for (int64_t tap = 0; tap < s.taps(); ++tap) {
      const TapPlace& place = plan.reads[static_cast<size_t>(tap)];
      const PixelPhase phase =
          plan.x_is_tensor ? PixelPhase{} : plan.phases[static_cast<size_t>(place.phase)];
      const Extent distance = plan.x_is_tensor ? Extent{1, 1} : w.stride;  // of pixels in the image
      expect_pixels_in_slab(plan.x, plan.input_planes(), place.row, place.column, last);
      for (int64_t channel = 0; channel < s.in_channels; ++channel) {
        const int64_t plane = channel * planes + place.phase;
        for (int64_t at = 0; at < plan.output.height * plan.output.width; ++at) {
          const int64_t h = at / plan.output.width, v = at % plan.output.width;
          const int64_t row =
              h * w.stride.height + tap / w.kernel.width * w.dilation.height - w.padding.height;
          const int64_t column =
              v * w.stride.width + tap % w.kernel.width * w.dilation.width - w.padding.width;
          const int64_t read = line_of(plan.x, plane, h * plan.x_step.height + place.row,
                                       v * plan.x_step.width + place.column);
          const bool is_there = contains(s.image, row, column);
          wrong += pixels.contains(read) != is_there;
          if (!is_there) continue;
          wrong += (row - phase.row) % distance.height != 0;
          wrong += (column - phase.column) % distance.width != 0;
          wrong += read != line_of(plan.x, plane, (row - phase.row) / distance.height,
                                   (column - phase.column) / distance.width);
        }
      }
    }
    EXPECT_EQ(wrong, 0);
  }
}

TEST(ConvPlan, InputGradientsReadTheOutputsThatAPixelIsIn) {
  for (const ConvolutionShape& s : test::convolution_sizes()) {
    SCOPED_TRACE(test::name_of_sizes(s));
    const ConvPlan plan = make_conv_plan(s);
    const std::set<int64_t> outputs = lines_of_images(plan.dy, s.out_channels, plan.output);
    int64_t wrong = 0;
    for (const TapPlace& place : plan.places) {
      expect_pixels_in_slab(plan.dy, s.out_channels, -place.row, -place.column, plan.phase);
      for (int64_t channel = 0; channel < s.out_channels; ++channel) {
        for (int64_t at = 0; at < plan.phase.height * plan.phase.width; ++at) {
          const int64_t h = at / plan.phase.width - place.row,
                        v = at % plan.phase.width - place.column;
          wrong += outputs.contains(line_of(plan.dy, channel, h, v)) != contains(plan.output, h, v);
        }
      }
    }
    EXPECT_EQ(wrong, 0);
  }
}

TEST(ConvPlan, PhasesCoverTheImage) {
  for (const ConvolutionShape& s : test::convolution_sizes()) {
    SCOPED_TRACE(test::name_of_sizes(s));
    const ConvPlan plan = make_conv_plan(s);
    const Extent stride = s.window.stride;
    for (const PixelPhase& phase : plan.phases) {
      EXPECT_TRUE(contains(stride, phase.row, phase.column));
    }
    EXPECT_EQ(plan.phase, (Extent{(s.image.height + stride.height - 1) / stride.height,
                                  (s.image.width + stride.width - 1) / stride.width}));
    EXPECT_EQ((Extent{plan.x.height, plan.x.width}), plan.x_is_tensor ? s.image : plan.phase);
    EXPECT_EQ((Extent{plan.dx.height, plan.dx.width}), plan.dx_is_tensor ? s.image : plan.phase);
    // Pixels of a phase, a step apart in dx, are those of the image.
    if (plan.dx_is_tensor) {
      EXPECT_EQ(plan.dx_step, stride);
      EXPECT_EQ((Extent{plan.phase.height * stride.height, plan.phase.width * stride.width}),
                s.image);
    } else {
      EXPECT_EQ(plan.dx_step, (Extent{1, 1}));
    }
    EXPECT_EQ((Extent{plan.dy.height, plan.dy.width}), plan.output);
    EXPECT_EQ(plan.gradient_planes(), s.in_channels * static_cast<int64_t>(plan.phases.size()));
    EXPECT_EQ(plan.input_planes(), plan.x_is_tensor ? s.in_channels : plan.gradient_planes());
  }
}

// Planes spread over the sets of a cache, and their rows do not overlap.
TEST(ConvPlan, PlanesHaveAnOddNumberOfLinesAndRoomForTheirRows) {
  for (const ConvolutionShape& s : test::convolution_sizes()) {
    SCOPED_TRACE(test::name_of_sizes(s));
    const ConvPlan plan = make_conv_plan(s);
    for (const Planes& planes : {plan.x, plan.dx, plan.dy}) {
      EXPECT_EQ(planes.plane_lines % 2, 1);
      EXPECT_GE(planes.row_lines, planes.width);
      EXPECT_GE(planes.plane_lines, planes.height * planes.row_lines);
    }
  }
}

TEST(ConvPlan, PlanesOfTensorsAreThoseOfImageSlabs) {
  for (const ConvolutionShape& s : test::convolution_sizes()) {
    SCOPED_TRACE(test::name_of_sizes(s));
    const ConvPlan plan = make_conv_plan(s);
    const ImageSlabs x(s.input_shape()), y(s.output_shape());
    if (plan.x_is_tensor) expect_equal(plan.x, planes_of(x));
    if (plan.dx_is_tensor) expect_equal(plan.dx, planes_of(x));
    if (plan.dy_is_tensor) expect_equal(plan.dy, planes_of(y));
    EXPECT_EQ(planes_of(x).slab_lines(s.in_channels), x.slab_lines());
    EXPECT_EQ(planes_of(x).lead_lines, x.lead_lines());
  }
}

// The convolutions that networks are made of copy nothing.
TEST(ConvPlan, ConvolutionsThatKeepOrHalveTheSizeRunOnTheTensorsThemselves) {
  for (const ConvolutionShape& s :
       {ConvolutionShape{16, 4, 8, 1, {8, 10}, {{3, 3}, {2, 2}, {1, 1}}},
        ConvolutionShape{16, 4, 8, 1, {8, 10}, {{1, 1}, {2, 2}}},
        ConvolutionShape{16, 4, 8, 1, {8, 9}, {{3, 3}, {1, 1}, {1, 1}}},
        ConvolutionShape{16, 4, 8, 1, {8, 9}, {{1, 1}}},
        ConvolutionShape{16, 4, 8, 1, {8, 9}, {{1, 3}, {1, 1}, {0, 1}}}}) {
    SCOPED_TRACE(test::name_of_sizes(s));
    const ConvPlan plan = make_conv_plan(s);
    EXPECT_TRUE(plan.x_is_tensor && plan.dx_is_tensor && plan.dy_is_tensor);
  }
}

TEST(ConvPlan, OnlyPhasesThatATapReadsArePlanned) {
  const ConvolutionShape s{3, 4, 3, 1, {8, 8}, {{1, 1}, {2, 2}}};
  EXPECT_EQ(make_conv_plan(s).phases.size(), 1u);
  ConvolutionShape three = s;
  three.window = {{3, 3}, {2, 2}, {1, 1}};
  EXPECT_EQ(make_conv_plan(three).phases.size(), 4u);
  three.window = {{3, 3}, {2, 2}, {1, 1}, {2, 2}};  // taps at even distances
  EXPECT_EQ(make_conv_plan(three).phases.size(), 1u);
}

TEST(ConvPlan, DoesNotDependOnTheBatch) {
  for (ConvolutionShape s : test::convolution_sizes()) {
    const ConvPlan plan = make_conv_plan(s);
    s.batch = 0;
    const ConvPlan of_any = make_conv_plan(s);
    expect_equal(plan.x, of_any.x);
    expect_equal(plan.dx, of_any.dx);
    expect_equal(plan.dy, of_any.dy);
  }
}

TEST(ConvPlan, AKernelThatDoesNotFitIsRefused) {
  expect_throws<ShapeError>(
      [] {
        make_conv_plan({1, 1, 1, 1, {4, 4}, {{5, 5}}});
      },
      "a kernel of 5x5 does not fit an image of 4x4");
}

}  // namespace
}  // namespace lacuna::conv_plan_test
