// The algorithms of dense convolutions in a configuration: measured once, written, read again.
#include "lacuna/framework/train/parts/convolution_algorithms.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "lacuna/framework/core/error.h"
#include "lacuna/framework/io/yaml.h"
#include "lacuna/framework/nn/sequential.h"
#include "lacuna/layers/convolutions/conv2d.h"
#include "throws.h"

namespace lacuna::convolution_algorithms_test {
namespace {

using Algorithm = ConvolutionAlgorithm;

class ChooseAlgorithms : public ::testing::Test {
 protected:
  ChooseAlgorithms()
      : conv1(model.add<Conv2d>(
            "conv1", {.in_channels = 16, .out_channels = 16, .padding = {1, 1}, .image = {8, 8}})),
        conv2(model.add<Conv2d>(
            "conv2", {.in_channels = 16, .out_channels = 16, .stride = {2, 2}, .image = {8, 8}})) {}

  Sequential model;
  Conv2d& conv1;
  Conv2d& conv2;
};

TEST_F(ChooseAlgorithms, WritesWhatItHasMeasuredSoThatARepeatDoesNot) {
  Config config = Config::map();
  choose_algorithms(config, model, 16);
  const Config section = config.at("convolution_algorithms");
  ASSERT_EQ(section.entries().size(), 2u);
  for (const Config& name : section.at("conv1").items()) {
    EXPECT_THAT(name.as<std::string>(),
                ::testing::AnyOf("direct", "winograd", ::testing::MatchesRegex("winograd/[1-7]")));
  }
  // There is no Winograd with a stride.
  EXPECT_EQ(conv2.algorithms(), ConvolutionAlgorithms());
  const ConvolutionAlgorithms chosen = conv1.algorithms();
  conv1.set_algorithms({});
  choose_algorithms(config, model, 16);
  EXPECT_EQ(conv1.algorithms(), chosen);
}

TEST_F(ChooseAlgorithms, TakesThoseThatAreGiven) {
  Config config = parse_yaml(
      "convolution_algorithms:\n  conv1: [winograd, direct, winograd/2]\n"
      "  conv2: [direct, direct, direct]\n",
      "a.yaml");
  choose_algorithms(config, model, 16);
  EXPECT_EQ(conv1.algorithms(),
            (ConvolutionAlgorithms{
                Algorithm::Winograd, Algorithm::Direct, {.is_winograd = true, .blocks = 2}}));
  EXPECT_NO_THROW(config.require_all_read());
  EXPECT_EQ(config.at("convolution_algorithms").at("conv1").items()[2].as<std::string>(),
            "winograd/2");
}

TEST_F(ChooseAlgorithms, TakesDirectWhereThereIsNoWinograd) {
  Config config = parse_yaml("convolution_algorithms: {conv2: [winograd, direct, direct]}\n", "a");
  choose_algorithms(config, model, 16);
  EXPECT_EQ(conv2.algorithms(), ConvolutionAlgorithms());
  for (const Config& name : config.at("convolution_algorithms").at("conv2").items()) {
    EXPECT_EQ(name.as<std::string>(), "direct");
  }
}

TEST_F(ChooseAlgorithms, RefusesWhatItDoesNotKnow) {
  const auto with = [&](const std::string& text) {
    Config config = parse_yaml("convolution_algorithms: " + text + "\n", "a.yaml");
    choose_algorithms(config, model, 16);
  };
  expect_throws<ConfigError>([&] { with("fast"); }, "a map from paths");
  expect_throws<ConfigError>([&] { with("{conv3: [direct, direct, direct]}"); },
                             "the model has no conv2d 'conv3'");
  expect_throws<ConfigError>([&] { with("{conv1: [direct, fast, direct]}"); },
                             "direct, winograd, or winograd/N");
  for (const char* blocks : {"winograd/0", "winograd/8", "winograd/12", "winograd/"}) {
    expect_throws<ConfigError>(
        [&] { with(std::string("{conv1: [direct, ") + blocks + ", direct]}"); },
        "direct, winograd, or winograd/N");
  }
  expect_throws<ConfigError>([&] { with("{conv1: [direct, direct]}"); }, "a list of three");
  Sequential none;
  Config config = parse_yaml("convolution_algorithms: {conv1: [direct, direct, direct]}\n", "a");
  expect_throws<ConfigError>([&] { choose_algorithms(config, none, 16); },
                             "the model has no conv2d 'conv1'");
}

TEST_F(ChooseAlgorithms, LeavesModelsWithoutConvolutionsAlone) {
  Sequential none;
  Config config = Config::map();
  choose_algorithms(config, none, 16);
  EXPECT_FALSE(config.has("convolution_algorithms"));
}

}  // namespace
}  // namespace lacuna::convolution_algorithms_test
