#include "lacuna/framework/nn/init.h"

#include <gmock/gmock.h>

#include <cmath>
#include <vector>

#include "lacuna/framework/core/error.h"
#include "throws.h"

namespace lacuna::init_test {
namespace {

using testing::ThrowsMessage;

TEST(Init, BoundsAndDeviationsAreThoseOfPyTorch) {
  EXPECT_EQ(kaiming_uniform({.fan_in = 50}).kind, Initializer::Kind::Uniform);
  EXPECT_DOUBLE_EQ(kaiming_uniform({.fan_in = 50}).spread, std::sqrt(6.0 / 50.0));
  EXPECT_DOUBLE_EQ(kaiming_uniform({.fan_in = 50, .gain = 1.0}).spread, std::sqrt(3.0 / 50.0));
  EXPECT_EQ(kaiming_normal({.fan_in = 50}).kind, Initializer::Kind::Normal);
  EXPECT_DOUBLE_EQ(kaiming_normal({.fan_in = 50}).spread, std::sqrt(2.0 / 50.0));
  EXPECT_DOUBLE_EQ(xavier_uniform({.fan_in = 50, .fan_out = 10}).spread, std::sqrt(6.0 / 60.0));
  EXPECT_DOUBLE_EQ(xavier_normal({.fan_in = 50, .fan_out = 10, .gain = 2.0}).spread,
                   2.0 * std::sqrt(2.0 / 60.0));
  EXPECT_DOUBLE_EQ(default_linear(64).spread, 0.125);
  EXPECT_EQ(default_linear(0).spread, 0.0);
}

TEST(Init, ValuesFollowTheDistribution) {
  std::vector<float> values(20000);
  const auto moments = [&](const Initializer& initializer) {
    initializer.fill(CounterRng(1, "fc.weight"), values);
    double sum = 0.0, squares = 0.0;
    for (const float v : values) {
      sum += v;
      squares += static_cast<double>(v) * v;
    }
    const auto count = static_cast<double>(values.size());
    return std::pair(sum / count, std::sqrt(squares / count));
  };
  const auto [mean, deviation] = moments(default_linear(100));
  EXPECT_NEAR(mean, 0.0, 0.002);
  EXPECT_NEAR(deviation, 0.1 / std::sqrt(3.0), 0.001);
  for (const float v : values) ASSERT_LE(std::abs(v), 0.1f);
  EXPECT_NEAR(moments(kaiming_normal({.fan_in = 200})).second, 0.1, 0.002);
}

TEST(Init, ForNonzerosReckonsWithWhatEachMethodAsksFor) {
  for (const auto& [init, fan] : {std::pair{WeightInit::Default, Initializer::Fan::In},
                                  {WeightInit::KaimingUniform, Initializer::Fan::In},
                                  {WeightInit::KaimingNormal, Initializer::Fan::In},
                                  {WeightInit::XavierUniform, Initializer::Fan::InAndOut},
                                  {WeightInit::XavierNormal, Initializer::Fan::InAndOut}}) {
    const Initializer all = make_initializer(init, 50, 10);
    const Initializer nonzeros = make_initializer_for_nonzeros(init, 50, 10);
    EXPECT_EQ(all.fan, Initializer::Fan::Fixed);
    EXPECT_EQ(nonzeros.fan, fan);
    EXPECT_EQ(nonzeros.kind, all.kind);
    EXPECT_EQ(nonzeros.spread, all.spread);
  }
}

TEST(Init, FanInIsANumberAllOrTheNonzeros) {
  EXPECT_EQ(FanIn(7).inputs(100), 7);
  for (const FanIn all : {FanIn(), FanIn(0), FanIn::all(), FanIn::nonzeros()}) {
    EXPECT_EQ(all.inputs(100), 100);
  }
  EXPECT_TRUE(FanIn::nonzeros().counts_nonzeros());
  EXPECT_FALSE(FanIn::all().counts_nonzeros());
  EXPECT_FALSE(FanIn(7).counts_nonzeros());
}

TEST(Init, FanInIsReadFromAConfiguration) {
  const auto read = [](const Config& value) {
    return read_fan_in(Config::map({{"init_fan_in", value}}), "init_fan_in");
  };
  EXPECT_EQ(read(6).inputs(100), 6);
  EXPECT_EQ(read(0).inputs(100), 100);  // as earlier versions wrote `all`
  EXPECT_FALSE(read(0).counts_nonzeros());
  EXPECT_FALSE(read("all").counts_nonzeros());
  EXPECT_TRUE(read("nonzeros").counts_nonzeros());
  const Config absent = Config::map();
  EXPECT_FALSE(read_fan_in(absent, "init_fan_in").counts_nonzeros());
  EXPECT_EQ(absent.at("init_fan_in").text(), "all");
  EXPECT_THAT([&] { read("nonzero"); },
              ThrowsMessage<ConfigError>(testing::HasSubstr(
                  "init_fan_in: expected all, nonzeros or a number of inputs, found 'nonzero'")));
  EXPECT_THROW(read(-1), ConfigError);
  EXPECT_THROW(read(1.5), ConfigError);
}

TEST(Init, IsChosenByName) {
  for (const auto& [name, kind] : {std::pair{"default", WeightInit::Default},
                                   {"kaiming_uniform", WeightInit::KaimingUniform},
                                   {"kaiming_normal", WeightInit::KaimingNormal},
                                   {"xavier_uniform", WeightInit::XavierUniform},
                                   {"xavier_normal", WeightInit::XavierNormal},
                                   {"zeros", WeightInit::Zeros}}) {
    EXPECT_EQ(read_weight_init(Config::map({{"init", name}}), "init"), kind);
  }
  EXPECT_EQ(read_weight_init(Config::map(), "init"), WeightInit::Default);
  EXPECT_EQ(make_initializer(WeightInit::Zeros, 3, 4).spread, 0.0);
  EXPECT_EQ(make_initializer(WeightInit::XavierNormal, 3, 5).spread, 0.5);
  EXPECT_THAT(
      [] {
        read_weight_init(Config::map({{"init", "kaiming_unifrom"}}), "init");
      },
      ThrowsMessage<ConfigError>(testing::HasSubstr(
          "unknown initialization 'kaiming_unifrom'; did you mean 'kaiming_uniform'?")));
}

TEST(Init, FansAreThoseOfPyTorch) {
  const auto expect = [](const Shape& weight, int64_t in, int64_t out) {
    EXPECT_EQ(fans_of(weight).in, in) << weight.to_string();
    EXPECT_EQ(fans_of(weight).out, out) << weight.to_string();
  };
  expect(Shape{10, 50}, 50, 10);
  expect(Shape{16, 8, 3, 2}, 48, 96);
  expect(Shape{16, 1, 3, 3}, 9, 144);  // depthwise: in / groups is 1, out counts all outputs
  expect(Shape{16, 8, 5}, 40, 80);
  EXPECT_THAT([] { fans_of(Shape{4}); },
              ThrowsMessage<ShapeError>(testing::HasSubstr(
                  "fan-in and fan-out need a weight [out, in, ...], found shape [4]")));
}

TEST(Init, DrawsWithAStandardDeviationOfItsOwn) {
  const WeightDraw normal = read_weight_init(
      Config::map({{"init", Config::map({{"type", "normal"}, {"std", 0.5}})}}), "init");
  EXPECT_EQ(normal, WeightDraw(WeightInit::Normal, 0.5));
  EXPECT_EQ(make_initializer(normal, 3, 4).spread, 0.5);
  const WeightDraw truncated = read_weight_init(
      Config::map({{"init", Config::map({{"type", "truncated_normal"}, {"std", 0.02}})}}), "init");
  EXPECT_EQ(truncated, WeightDraw(WeightInit::TruncatedNormal, 0.02));
  EXPECT_TRUE(truncated.zero_bias());
  EXPECT_FALSE(WeightDraw(WeightInit::XavierNormal).zero_bias());
  const auto refuses = [](const Config& init, const std::string& words) {
    expect_throws<ConfigError>(
        [&] {
          read_weight_init(Config::map({{"init", init}}), "init");
        },
        words);
  };
  refuses(Config::map({{"type", "norml"}, {"std", 1.0}}),
          "unknown initialization 'norml'; did you mean 'normal'?");
  refuses(Config::map({{"type", "normal"}}), "std");
  refuses(Config::map({{"type", "normal"}, {"std", -1.0}}), "a finite number of at least 0");
}

// Standard normal within ±2: variance 1 − 4 φ(2) / (Φ(2) − Φ(−2)) = 0.7737; half of the values lie
// within Φ⁻¹(½ + ¼ · 0.9545) = 0.6399.
TEST(Init, TruncatedNormalStaysWithinTwoDeviations) {
  std::vector<float> values(40000);
  Initializer::truncated_normal(0.5).fill(CounterRng(1, "wte.weight"), values);
  double mean = 0.0, squares = 0.0, largest = 0.0, inner = 0.0;
  for (const float v : values) {
    mean += v / 40000.0;
    squares += static_cast<double>(v) * v / 40000.0;
    largest = std::max(largest, std::abs(static_cast<double>(v)));
    if (std::abs(v) < 0.5 * 0.6399) inner += 1.0 / 40000.0;
  }
  EXPECT_NEAR(mean, 0.0, 0.01);
  EXPECT_NEAR(squares, 0.25 * 0.7737, 0.003);
  EXPECT_LE(largest, 1.0);
  EXPECT_GT(largest, 0.99);
  EXPECT_NEAR(inner, 0.5, 0.01);
  EXPECT_EQ(values[7], Initializer::truncated_normal(0.5).value(CounterRng(1, "wte.weight"), 7));
}

}  // namespace
}  // namespace lacuna::init_test
