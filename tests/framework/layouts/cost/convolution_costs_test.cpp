// What the cost model says of convolutions' weights. Times are measured here, so that what is
// tested is what holds of any.
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "lacuna/framework/core/version.h"
#include "lacuna/framework/kernels/dense/convolution.hpp"
#include "lacuna/framework/layouts/cost/cost_model.hpp"

namespace lacuna::convolution_costs_test {
namespace {

// Sizes are those of one test alone: no other may have measured them.
ConvolutionShape shape_of(int64_t out_channels, int64_t groups = 1) {
  return {2, 4, out_channels, groups, {6, 5}, {{3, 3}, {1, 1}, {1, 1}}};
}

// Lines of the file of measured costs whose key begins so.
std::vector<std::string> measured(const std::string& key) {
  const char* folder = std::getenv("LACUNA_CACHE_DIR");
  std::vector<std::string> lines;
  if (folder == nullptr) return lines;
  std::ifstream file(std::filesystem::path(folder) /
                     ("step-costs-" + std::string(kVersion) + ".txt"));
  for (std::string line; std::getline(file, line);) {
    if (line.starts_with(key)) lines.push_back(line);
  }
  return lines;
}

TEST(CostModelOfConvolutions, ItsDensityLimitIsMeasuredOnce) {
  const ConvolutionShape s = shape_of(7);
  const double limit = density_limit(s);
  EXPECT_GE(limit, 0.0);
  EXPECT_LE(limit, 1.0);
  const std::vector<std::string> lines = measured("conv/4x7/6x5/3x3/1x1/1x1/1x1/2/");
  EXPECT_FALSE(lines.empty());
  EXPECT_EQ(density_limit(s), limit);
  EXPECT_EQ(measured("conv/4x7/6x5/3x3/1x1/1x1/1x1/2/"), lines);
}

// Whichever is the faster one on this machine.
TEST(CostModelOfConvolutions, TheChoiceFollowsTheCostsAndIsRemembered) {
  const ConvolutionShape s = shape_of(40);
  for (const int64_t nnz : {int64_t{0}, int64_t{1}, int64_t{400}, s.weight_shape().numel()}) {
    const LayoutChoice first = compare_layouts(s, nnz), again = compare_layouts(s, nnz);
    EXPECT_GT(first.costs.masked_ms, 0.0);
    EXPECT_GT(first.costs.compressed_ms, 0.0);
    const bool is_csr = first.costs.compressed_ms < first.costs.masked_ms;
    EXPECT_EQ(first.layout, is_csr ? &csr_layout() : &masked_layout());
    EXPECT_TRUE(first.reason.starts_with(is_csr ? "csr: csr " : "masked: csr ")) << first.reason;
    EXPECT_EQ(again.layout, first.layout);
    EXPECT_EQ(again.costs.masked_ms, first.costs.masked_ms);
    EXPECT_EQ(again.costs.compressed_ms, first.costs.compressed_ms);
    EXPECT_NE(again.reason.find("(measured before)"), std::string::npos) << again.reason;
  }
}

TEST(CostModelOfConvolutions, LargeBatchesCostAsTheirExamplesDo) {
  ConvolutionShape s = shape_of(9);
  s.batch = 64;
  const LayoutChoice measured_one = compare_layouts(s, 100);
  s.batch = 256;
  const LayoutChoice scaled = compare_layouts(s, 100);
  EXPECT_DOUBLE_EQ(scaled.costs.masked_ms, 4.0 * measured_one.costs.masked_ms);
  EXPECT_DOUBLE_EQ(scaled.costs.compressed_ms, 4.0 * measured_one.costs.compressed_ms);
  EXPECT_NE(scaled.reason.find("(measured before)"), std::string::npos) << scaled.reason;
}

TEST(CostModelOfConvolutions, GroupedOnesStayMasked) {
  const ConvolutionShape s = shape_of(8, 2);
  EXPECT_EQ(density_limit(s), 0.0);
  EXPECT_EQ(compare_layouts(s, 5).layout, &masked_layout());
  EXPECT_TRUE(measured("conv/4x8/").empty());
}

TEST(CostModelOfConvolutions, WhatHasNoProductsStaysMasked) {
  ConvolutionShape none = shape_of(0);
  EXPECT_EQ(density_limit(none), 0.0);
  EXPECT_EQ(compare_layouts(none, 0).layout, &masked_layout());
  ConvolutionShape no_image = shape_of(6);
  no_image.image = {0, 5};
  EXPECT_EQ(density_limit(no_image), 0.0);
}

TEST(CostModelOfConvolutions, AKernelThatDoesNotFitHasNoLimit) {
  ConvolutionShape s = shape_of(11);
  s.window.kernel = {9, 9};
  EXPECT_EQ(density_limit(s), 0.0);
  s.window.kernel = {3, 9};
  EXPECT_EQ(density_limit(s), 0.0);
}

TEST(CostModelOfConvolutions, WinogradIsForKernelsThatItHas) {
  const auto is_direct = [](const ConvolutionShape& s) {
    return fastest_algorithms(s) == ConvolutionAlgorithms{};
  };
  ConvolutionShape s = shape_of(12);
  s.window.stride = {2, 2};
  EXPECT_TRUE(is_direct(s));
  s = shape_of(12);
  s.window.dilation = {2, 2};
  EXPECT_TRUE(is_direct(s));
  s = shape_of(12);
  s.window.kernel = {1, 1};
  EXPECT_TRUE(is_direct(s));
  s.window.kernel = {5, 5};
  EXPECT_TRUE(is_direct(s));
  EXPECT_TRUE(is_direct(shape_of(12, 2)));
  EXPECT_TRUE(measured("conv/4x12/").empty());
}

TEST(CostModelOfConvolutions, AlgorithmsAreMeasuredOnce) {
  const ConvolutionShape s = shape_of(13);
  const ConvolutionAlgorithms found = fastest_algorithms(s);
  const std::vector<std::string> lines = measured("conv/4x13/");
  if (!has_winograd(s)) {
    EXPECT_EQ(found, ConvolutionAlgorithms{});
  }
  EXPECT_EQ(lines.size(), has_winograd(s) ? 3u : 0u);  // one for each product
  EXPECT_EQ(fastest_algorithms(s), found);
  EXPECT_EQ(measured("conv/4x13/"), lines);
}

}  // namespace
}  // namespace lacuna::convolution_costs_test
