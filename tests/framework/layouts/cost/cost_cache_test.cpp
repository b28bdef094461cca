#include "lacuna/framework/layouts/cost/cost_cache.hpp"

#include <gtest/gtest.h>

#include <cstdlib>
#include <string>

#include "lacuna/framework/core/version.h"
#include "temporary_folder.h"

namespace lacuna::cost_cache_test {
namespace {

// With a cache folder of its own, as long as the test runs.
class CostCacheFile : public testing::Test {
 protected:
  CostCacheFile() { ::setenv("LACUNA_CACHE_DIR", folder_.path().c_str(), 1); }
  ~CostCacheFile() override {
    if (had_) {
      ::setenv("LACUNA_CACHE_DIR", before_.c_str(), 1);
    } else {
      ::unsetenv("LACUNA_CACHE_DIR");
    }
  }
  std::string file() const { return folder_ / ("step-costs-" + std::string(kVersion) + ".txt"); }

  const WeightClass class_ =
      class_of(csr_layout(), PatternLifetime::ManySteps, Shape{24, 24}, 6, 4);
  const std::string line_ = class_.key() + " 123456 654321\n";
  const TemporaryFolder folder_;
  bool measured_now_ = false;

 private:
  const bool had_ = std::getenv("LACUNA_CACHE_DIR") != nullptr;
  const std::string before_ = had_ ? std::getenv("LACUNA_CACHE_DIR") : "";
};

TEST_F(CostCacheFile, BeginsWithTheGenerationOfTheKernels) {
  CostCache first;
  const LayoutCosts measured = first.find(class_, measured_now_);
  EXPECT_TRUE(measured_now_);
  const std::string text = read_text(file());
  EXPECT_EQ(text.find(cost_file_header() + "\n" + class_.key() + " "), 0u) << text;
  CostCache second;
  measured_now_ = false;
  const LayoutCosts read = second.find(class_, measured_now_);
  EXPECT_FALSE(measured_now_);
  EXPECT_NEAR(read.masked_ms, measured.masked_ms, 1e-4 * measured.masked_ms);
  second.find(class_of(csr_layout(), PatternLifetime::ManySteps, Shape{24, 24}, 8, 4),
              measured_now_);
  const std::string longer = read_text(file());
  EXPECT_EQ(longer.rfind(cost_file_header()), 0u) << longer;  // once
  EXPECT_TRUE(longer.starts_with(text));
}

// So that a run that reads goes by the same densities as the one that measured. The steps are of
// milliseconds: of more nanoseconds than six digits hold.
TEST_F(CostCacheFile, HoldsWhatWasMeasuredToTheLastBit) {
  const WeightClass large =
      class_of(csr_layout(), PatternLifetime::ManySteps, Shape{1024, 1024}, 400000, 512);
  CostCache first, second;
  const LayoutCosts measured = first.find(large, measured_now_);
  const LayoutCosts read = second.find(large, measured_now_ = false);
  EXPECT_FALSE(measured_now_);
  EXPECT_EQ(read.masked_ms, measured.masked_ms);
  EXPECT_EQ(read.compressed_ms, measured.compressed_ms);
}

TEST_F(CostCacheFile, OfTheseKernelsIsTaken) {
  write_text(file(), cost_file_header() + "\n" + line_);
  CostCache cache;
  EXPECT_EQ(cache.find(class_, measured_now_).masked_ms, 123456.0);
  EXPECT_FALSE(measured_now_);
}

// As that of an earlier program of the same version is.
TEST_F(CostCacheFile, OfOtherKernelsIsPassedOverAndReplaced) {
  const std::string other = "costs of steps, kernels of generation 0\n";
  for (const std::string& text : {line_, other + line_, "\n" + line_}) {
    write_text(file(), text);
    CostCache cache;
    measured_now_ = false;
    EXPECT_NE(cache.find(class_, measured_now_).masked_ms, 123456.0) << text;
    EXPECT_TRUE(measured_now_) << text;
    const std::string now = read_text(file());
    EXPECT_TRUE(now.starts_with(cost_file_header() + "\n" + class_.key() + " ")) << now;
    EXPECT_EQ(now.find("123456"), std::string::npos) << now;
  }
}

}  // namespace
}  // namespace lacuna::cost_cache_test
