#include "lacuna/framework/layouts/cost/cost_model.hpp"

#include <gtest/gtest.h>

#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "lacuna/framework/core/buffer.h"
#include "lacuna/framework/core/parallel.h"
#include "lacuna/framework/core/version.h"
#include "lacuna/framework/kernels/instruction_set.hpp"
#include "lacuna/framework/layouts/cost/cost_cache.hpp"

namespace lacuna::cost_model_test {
namespace {

namespace fs = std::filesystem;

// The cache is read once in a process: the file stands before any test runs.
class Cache : public testing::Environment {
 public:
  void SetUp() override {
    folder_ = fs::path(testing::TempDir()) / ("lacuna_costs_" + std::to_string(::getpid()));
    fs::create_directories(folder_);
    ::setenv("LACUNA_CACHE_DIR", folder_.c_str(), 1);
    const std::string suffix = "/" + active_instruction_set() + " ";
    std::ofstream(file()) << cost_file_header() << "\n"
                          << "40x48/32/2" << suffix << "1.5 0.5\n"
                          << "a torn li\n"
                          << "40x48/32/4" << suffix << "0.5 1.5\n"
                          << "1024x1024/64/6" << suffix << "2 1\n"
                          << "1024x1024/64/7" << suffix << "2 0.5\n"
                          << "1024x1024/256/6" << suffix << "8 4\n"
                          << "1024x1024/256/7" << suffix << "8 2\n";
    std::ofstream costs(file(), std::ios::app);
    for (int h = 0; h <= 16; ++h) {
      costs << "50x60/8/" << h << suffix << "1 " << (h < 3 ? 2.0 : 0.5) << "\n"
            << "51x60/8/" << h << suffix << "1 2\n"
            << "52x60/8/" << h << suffix << "1 0.5\n"
            << "53x60/64/" << h << suffix << "2 4\n"
            << "53x60/256/" << h << suffix << "8 8.5\n"
            << "54x60/64/" << h << suffix << "3 2\n"
            << "54x60/256/" << h << suffix << "2 1\n"
            << "50x60/8/" << h << suffix.substr(0, suffix.size() - 1) << "/one_step 1 "
            << (h < 5 ? 2.0 : 0.5) << "\n";
    }
  }
  void TearDown() override { fs::remove_all(folder_); }
  static fs::path file() {
    return fs::path(std::getenv("LACUNA_CACHE_DIR")) /
           ("step-costs-" + std::string(kVersion) + ".txt");
  }

 private:
  fs::path folder_;
};
const auto* const cache = testing::AddGlobalTestEnvironment(new Cache);

TEST(CostModel, TakesWhatWasMeasuredBefore) {
  const LayoutChoice half = compare_layouts(Shape{40, 48}, 960, 32);
  EXPECT_EQ(half.layout, &csr_layout());
  EXPECT_EQ(half.reason, "csr: csr 0.5 ms per step, masked 1.5 ms (measured before)");
  EXPECT_EQ(compare_layouts(Shape{40, 48}, 480, 32).layout, &masked_layout());
}

TEST(CostModel, ScalesLargeWeightsFromTheirClass) {
  reset_memory_peak();
  const int64_t side = 16384;
  const LayoutChoice choice = compare_layouts(Shape{side, side}, side * side / 11, 512);
  EXPECT_EQ(choice.layout, &csr_layout());
  EXPECT_NEAR(choice.costs.masked_ms, 8.0 * 256 * 2, 1e-9);
  EXPECT_NEAR(choice.costs.compressed_ms / (256 * 2), 2.1377, 0.001);  // 7 % of the way
  EXPECT_LT(memory_stats().largest, side * side);
}

// What costs once a batch, csr 2.5 ms and masked nothing, counts less and less.
TEST(CostModel, TakesMoreRowsThanAreTimedFromALine) {
  const Shape shape{53, 60};
  const auto costs = [&](int64_t rows) { return compare_layouts(shape, 1590, rows).costs; };
  EXPECT_DOUBLE_EQ(costs(256).compressed_ms, 8.5);
  EXPECT_DOUBLE_EQ(costs(448).masked_ms, 14.0);
  EXPECT_DOUBLE_EQ(costs(448).compressed_ms, 13.0);
  EXPECT_DOUBLE_EQ(costs(65536 + 64).masked_ms, 2.0 + 1024 * 2.0);
  EXPECT_EQ(density_limit(shape, 256), 0.0);
  EXPECT_EQ(density_limit(shape, 4096), 1.0);
  // Noise makes no row cost less than nothing.
  EXPECT_DOUBLE_EQ(compare_layouts(Shape{54, 60}, 1620, 4096).costs.masked_ms, 2.0);
}

TEST(CostModel, MeasuresAndRemembersWhatIsNew) {
  const LayoutChoice first = compare_layouts(Shape{300, 200}, 300, 70);
  EXPECT_EQ(first.layout, &csr_layout()) << first.reason;
  EXPECT_NE(first.reason.find("measured now"), std::string::npos);
  const LayoutChoice again = compare_layouts(Shape{300, 200}, 300, 70);
  EXPECT_EQ(again.costs.compressed_ms, first.costs.compressed_ms);
  EXPECT_NE(again.reason.find("measured before"), std::string::npos);
  std::ifstream file(Cache::file());
  const std::string text(std::istreambuf_iterator<char>(file), {});
  EXPECT_NE(text.find("300x200/70/15/"), std::string::npos);
}

// So that choices, and with them results, do not depend on the number of threads.
TEST(CostModel, MeasuresOnceForAnyNumberOfThreads) {
  const int before = num_threads();
  set_num_threads(2);
  internal::take_most_threads();
  const LayoutChoice first = compare_layouts(Shape{310, 200}, 300, 70);
  EXPECT_EQ(internal::take_most_threads(), 1);
  EXPECT_EQ(num_threads(), 2);
  set_num_threads(1);
  const LayoutChoice again = compare_layouts(Shape{310, 200}, 300, 70);
  EXPECT_NE(first.reason.find("measured now"), std::string::npos);
  EXPECT_NE(again.reason.find("measured before"), std::string::npos);
  EXPECT_EQ(again.costs.masked_ms, first.costs.masked_ms);
  set_num_threads(before);
}

TEST(CostModel, FindsTheDensityUpToWhichCsrIsFaster) {
  // csr takes 2 ms at a density of 1/2 and 0.5 ms at 2^(−3/2), masked 1 ms: a third of the way.
  EXPECT_NEAR(density_limit(Shape{50, 60}, 8), 0.4024, 0.0001);
  EXPECT_EQ(density_limit(Shape{51, 60}, 8), 0.0);
  EXPECT_EQ(density_limit(Shape{52, 60}, 8), 1.0);
  EXPECT_EQ(density_limit(Shape{52}, 8), 0.0);
}

TEST(CostModel, CountsTheMakingOfPatternsForOneStep) {
  const Shape shape{50, 60};
  EXPECT_NEAR(density_limit(shape, 8, csr_layout(), PatternLifetime::OneStep), 0.2012, 0.0001);
  EXPECT_EQ(compare_layouts(shape, 900, 8).layout, &csr_layout());
  EXPECT_EQ(compare_layouts(shape, 900, 8, csr_layout(), PatternLifetime::OneStep).layout,
            &masked_layout());
  const LayoutChoice few =
      compare_layouts(Shape{256, 256}, 650, 32, csr_layout(), PatternLifetime::OneStep);
  EXPECT_EQ(few.layout, &csr_layout()) << few.reason;
  EXPECT_NE(few.reason.find("measured now"), std::string::npos);
}

TEST(CostModel, WhatIsNoMatrixStaysMasked) {
  EXPECT_EQ(compare_layouts(Shape{40}, 2, 32).layout, &masked_layout());
  EXPECT_EQ(compare_layouts(Shape{0, 3}, 0, 32).layout, &masked_layout());
}

}  // namespace
}  // namespace lacuna::cost_model_test
