#include "lacuna/sparsity/options/distribution.h"

#include <gtest/gtest.h>

#include <numeric>
#include <vector>

#include "lacuna/sparsity/masks/scores.h"
#include "lacuna/sparsity/options/counting.hpp"
#include "lacuna/sparsity/options/target.h"
#include "lacuna/sparsity/sparsity_options.h"
#include "throws.h"

namespace lacuna::distribution_test {
namespace {

constexpr Distribution kErk{Distribution::Kind::Erk};
constexpr Distribution kEr{Distribution::Kind::Er};
constexpr Distribution kIgq{Distribution::Kind::Igq};

int64_t total(const std::vector<int64_t>& counts) {
  return std::accumulate(counts.begin(), counts.end(), int64_t{0});
}

TEST(Distribution, ErkKnownValues) {
  const std::vector<double> density =
      layer_densities(kErk, 0.5, {Shape{2, 4}, Shape{3, 6}, Shape{2, 4, 6}});
  EXPECT_NEAR(1 - density[0], 0.0, 0.005);
  EXPECT_NEAR(1 - density[1], 0.31, 0.005);
  EXPECT_NEAR(1 - density[2], 0.655, 0.005);
}

TEST(Distribution, ErkKnownDensitiesOfAnMlp) {
  const std::vector<double> density =
      layer_densities(kErk, 0.05, {Shape{1024, 3072}, Shape{512, 1024}, Shape{10, 512}});
  EXPECT_NEAR(density[0], 0.0412997, 1e-7);
  EXPECT_NEAR(density[1], 0.0929244, 1e-7);
  EXPECT_EQ(density[2], 1.0);
}

TEST(Distribution, ErCountsChannelsOfAConvolution) {
  const std::vector<double> a = layer_densities(kEr, 0.2, {Shape{16, 8}, Shape{32, 16}});
  EXPECT_NEAR(a[0] / a[1], (24.0 / 128) / (48.0 / 512), 1e-12);
  const std::vector<double> b =
      layer_densities(kEr, 0.2, {Shape{16, 8, 3, 3}, Shape{32, 16, 3, 3}});
  EXPECT_NEAR(b[0] / b[1], a[0] / a[1], 1e-12);
}

TEST(Distribution, IgqEquation) {
  const std::vector<Shape> shapes{Shape{30, 40}, Shape{300, 40}};
  const std::vector<double> density = layer_densities(kIgq, 0.1, shapes);
  // 1/density − 1 = F·numel for one F.
  EXPECT_NEAR((1 / density[0] - 1) / 1200, (1 / density[1] - 1) / 12000, 1e-9);
  EXPECT_NEAR(density[0] * 1200 + density[1] * 12000, 0.1 * 13200, 1e-6);
}

TEST(Distribution, GlobalBudgetsAreExact) {
  const std::vector<Shape> shapes{Shape{300, 784}, Shape{100, 300}, Shape{7, 13}, Shape{1, 1}};
  int64_t numel = 0;
  for (const Shape& shape : shapes) numel += shape.numel();
  for (const Distribution& d : {kEr, kErk, kIgq}) {
    for (const float sparsity : {0.0f, 0.1f, 0.5f, 0.9f, 0.95f, 0.98f, 0.999f}) {
      const std::vector<int64_t> counts = distribute_nnz(d, sparsity, shapes);
      EXPECT_EQ(total(counts), target_nnz(sparsity, numel)) << sparsity;
      for (size_t i = 0; i < shapes.size(); ++i) {
        EXPECT_GE(counts[i], 0);
        EXPECT_LE(counts[i], shapes[i].numel());
      }
    }
  }
}

TEST(Distribution, UniformCountsEachTensorForItself) {
  const std::vector<int64_t> counts = distribute_nnz({}, 0.9f, {Shape{300, 784}, Shape{100, 300}});
  EXPECT_EQ(counts, (std::vector<int64_t>{target_nnz(0.9f, 235200), target_nnz(0.9f, 30000)}));
}

TEST(Distribution, UnreachableTargetSaysWhatCanBeReached) {
  expect_throws<ConfigError>(
      [] {
        distribute_nnz(kErk, 0.99f, {Shape{4, 4}, Shape{4, 4}});
      },
      "the largest that can be reached is 0.9375");
}

TEST(Distribution, RemaindersGoToTheLargest) {
  EXPECT_EQ(round_to_budget({1.2, 1.7, 1.1}, {9, 9, 9}, 4), (std::vector<int64_t>{1, 2, 1}));
  EXPECT_EQ(round_to_budget({1.5, 1.5, 1.0}, {9, 9, 9}, 4), (std::vector<int64_t>{2, 1, 1}));
  EXPECT_EQ(round_to_budget({2.9, 1.0}, {2, 9}, 4), (std::vector<int64_t>{2, 2}));
}

TEST(Distribution, UnknownNameSuggestsTheNearest) {
  expect_throws<ConfigError>([] { Distribution::from_config(Config("erg")); }, "did you mean 'er");
}

TEST(SparsityTarget, ADistributionSharesADensityToo) {
  const std::vector<Shape> shapes{Shape{300, 784}, Shape{100, 300}, Shape{10, 100}};
  const auto by = [&](const SparsityTarget& target) {
    return target.nnz_at(0, 0, shapes, kErk, ScoreGroups::flat());
  };
  EXPECT_EQ(by(SparsityTarget::density(0.125)), by(SparsityTarget(0.875)));
  EXPECT_NE(by(SparsityTarget::density(0.125)).front(), 300 * 784 / 8);

  SparsityOptions options{.sparsity = SparsityTarget::fan_in(8), .distribution = kErk};
  expect_throws<ConfigError>([&] { options.checked(); }, "leave distribution out");
}

TEST(SparsityTarget, DensityAndFanInStayExactWhereSparsityIsTooCoarse) {
  const Shape wide{500000, 65536};
  const auto counts =
      SparsityTarget::fan_in(8).nnz_at(0, 0, {wide}, Distribution(), ScoreGroups::flat());
  EXPECT_EQ(counts[0], 4000000);
  const auto dense =
      SparsityTarget::density(1.0 / 8192).nnz_at(0, 0, {wide}, Distribution(), ScoreGroups::flat());
  EXPECT_EQ(dense[0], 4000000);
}

TEST(SparsityTarget, RefusesWhatIsNoDensityOrFanIn) {
  for (const double density : {0.0, -0.5, 1.5}) {
    expect_throws<ConfigError>([&] { SparsityTarget::density(density); },
                               "density must be in (0, 1], found " + Config(density).text());
  }
  expect_throws<ConfigError>([] { SparsityTarget::fan_in(0.0); },
                             "fan_in must be above 0, found 0.0");
  const auto read = [](const char* key, Config value) {
    return SparsityTarget::from_config(Config::map({{key, std::move(value)}}));
  };
  expect_throws<ConfigError>([&] { read("density", 0.0); }, "density: expected a number from");
  expect_throws<ConfigError>([&] { read("density", 1.1); }, "to 1.0, found '1.1'");
  expect_throws<ConfigError>([&] { read("fan_in", -1); }, "fan_in: expected a number from");
  expect_throws<ConfigError>([&] { read("fan_in", "wide"); },
                             "fan_in: expected a number, found 'wide'");
  expect_throws<ConfigError>([&] { read("sparsity", "high"); },
                             "sparsity: expected a number, a list of numbers or a map");
}

TEST(SparsityTarget, TakesOneKeyOnly) {
  Config entry = Config::map({{"sparsity", 0.5}, {"density", 0.5}});
  expect_throws<ConfigError>([&] { SparsityTarget::from_config(entry); },
                             "`sparsity` and `density` are both given");
  Config range = Config::map({{"sparsity", 1.5}});
  expect_throws<ConfigError>([&] { SparsityTarget::from_config(range); },
                             "expected a number from 0.0 to 1.0, found '1.5'");
}

}  // namespace
}  // namespace lacuna::distribution_test
