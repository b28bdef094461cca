#include "lacuna/layers/builtin.hpp"

#include <gmock/gmock.h>

#include <memory>
#include <set>
#include <string>

#include "lacuna/framework/core/error.h"
#include "lacuna/layers/activations.h"
#include "lacuna/layers/linear.h"
#include "throws.h"

namespace lacuna::builtin_test {
namespace {

using testing::ElementsAre;

const LayerRegistry& registry() {
  static const LayerRegistry all = [] {
    LayerRegistry registry("layer");
    register_layers(registry);
    return registry;
  }();
  return all;
}

std::unique_ptr<Module> make(const std::string& name, const Config& options,
                             const Shape& input = {20}) {
  return registry().find(name, options).make(options, input);
}

TEST(Builtin, ListsEveryLayerUnderItsType) {
  EXPECT_THAT(registry().names(),
              ElementsAre("attention", "avg_pool", "batch_norm", "class_token", "conv1d", "conv2d",
                          "dropout", "embedding_bag", "flatten", "gelu", "global_average_pool",
                          "group_norm", "labelled_tokens", "layer_norm", "leaky_relu", "linear",
                          "max_pool", "mean_pool", "patch_embedding", "position_embedding", "relu",
                          "rms_norm", "rotary", "select_token", "semi_sparse_activation", "sigmoid",
                          "silu", "squared_relu", "subsample_pad", "swiglu", "tanh", "tiled_linear",
                          "token_embedding", "token_type_embedding"));
  const std::set<std::string> of_images = {"avg_pool", "conv2d",          "global_average_pool",
                                           "max_pool", "patch_embedding", "subsample_pad"};
  for (const auto& [name, entry] : registry().entries()) {
    const bool takes_images = of_images.contains(name), takes_sequences = name == "conv1d";
    const Config options = takes_images || takes_sequences
                               ? Config::map({{"out_channels", 4},
                                              {"kernel", 2},
                                              {"groups", 2},
                                              {"patch", 2},
                                              {"features", name == "patch_embedding" ? 5 : 2}})
                               : Config::map({{"out_features", 3},
                                              {"groups", 4},
                                              {"heads", 2},
                                              {"positions", 8},
                                              {"vocab_size", 9},
                                              {"features", 20}});
    const Shape input = takes_images ? Shape{2, 6, 6} : takes_sequences ? Shape{2, 6} : Shape{20};
    EXPECT_EQ(entry.make(options, input)->type(), name);
    EXPECT_FALSE(entry.help.empty());
  }
  EXPECT_EQ(&layer_registry(), &layer_registry());
  expect_throws<ConfigError>([] { make("liner", Config::map()); },
                             "unknown layer 'liner'; did you mean 'linear'?");
}

TEST(Builtin, LinearInfersItsInputAndWritesTheDefaults) {
  Config options = Config::map({{"out_features", 3}});
  const auto layer = make("linear", options);
  EXPECT_EQ(layer->parameters()[0]->shape(), (Shape{3, 20}));
  EXPECT_EQ(layer->parameters().size(), 2u);
  EXPECT_EQ(options.required<int64_t>("in_features"), 20);
  EXPECT_EQ(options.required<bool>("bias"), true);
  EXPECT_EQ(options.required<std::string>("init"), "default");
  options.require_all_read();

  const Config other =
      Config::map({{"out_features", 3}, {"in_features", 20}, {"bias", false}, {"init", "zeros"}});
  const auto plain = make("linear", other, {7, 20});
  EXPECT_EQ(plain->parameters().size(), 1u);
  EXPECT_EQ(plain->parameters()[0]->values().to_vector(), std::vector<float>(60, 0.0f));
}

TEST(Builtin, LinearRefusesWhatDoesNotFit) {
  expect_throws<ConfigError>([] { make("linear", Config::map()); }, "out_features");
  expect_throws<ConfigError>(
      [] {
        make("linear", Config::map({{"out_features", 0}}));
      },
      "out_features");
  expect_throws<ShapeError>(
      [] {
        make("linear", Config::map({{"out_features", 3}, {"in_features", 19}}));
      },
      "in_features is 19, but the examples that reach this layer have shape [20]");
  expect_throws<ShapeError>(
      [] {
        make("linear", Config::map({{"out_features", 3}}), {});
      },
      "this layer needs examples of shape [..., features], its input has "
      "shape []");
}

TEST(Builtin, OtherLayersReadTheirOptions) {
  const Tensor x = Tensor::full({1, 1}, 1.5f);
  const auto tanh = make("gelu", Config::map({{"approximate", "tanh"}}));
  EXPECT_NEAR((*tanh)(x).value().item(), 1.3995715f, 1e-6);
  EXPECT_NEAR((*make("gelu", Config::map()))(x).value().item(), 1.3997893f, 1e-6);
  expect_throws<ConfigError>(
      [] {
        make("gelu", Config::map({{"approximate", "erf"}}));
      },
      "expected none or tanh");

  EXPECT_EQ(make("layer_norm", Config::map({{"eps", 0.1}}))->parameters()[0]->shape(), (Shape{20}));
  expect_throws<ConfigError>(
      [] {
        make("layer_norm", Config::map({{"eps", 0.0}}));
      },
      "expected a number above 0");
  expect_throws<ShapeError>(
      [] {
        make("layer_norm", Config::map({{"features", 3}}));
      },
      "features is 3, but the examples that reach this layer have shape "
      "[20]");

  const auto all = make("dropout", Config::map({{"p", 0.0}}));
  EXPECT_EQ((*all)(x).value().item(), 1.5f);
  expect_throws<ConfigError>(
      [] {
        make("dropout", Config::map({{"p", 1.0}}));
      },
      "expected a probability in [0, 1)");
}

TEST(Builtin, GroupNormInfersItsChannelsAndRefusesWhatDoesNotFit) {
  const Config options = Config::map({{"groups", 5}});
  EXPECT_EQ(make("group_norm", options, {20, 3, 3})->parameters()[0]->shape(), (Shape{20}));
  EXPECT_EQ(options.required<int64_t>("channels"), 20);
  EXPECT_EQ(options.required<double>("eps"), 1e-5);
  const auto with = [](std::vector<Config::Entry> entries, const Shape& input = {20, 3, 3}) {
    make("group_norm", Config::map(std::move(entries)), input);
  };
  expect_throws<ConfigError>([&] { with({}); }, "groups: a required key is missing");
  expect_throws<ConfigError>(
      [&] {
        with({{"groups", 3}});
      },
      "groups: expected a divisor of the 20 channels of examples of shape [20, 3, 3], found '3'");
  expect_throws<ConfigError>([&] { with({{"groups", 0}}); }, "groups: expected");
  expect_throws<ConfigError>(
      [&] {
        with({{"groups", 5}, {"eps", 0.0}});
      },
      "eps: expected a number above 0");
  expect_throws<ShapeError>(
      [&] {
        with({{"groups", 3}, {"channels", 3}});
      },
      "channels is 3, but the examples that reach this layer have shape [20, 3, 3]");
  expect_throws<ShapeError>(
      [&] {
        with({{"groups", 1}}, {});
      },
      "this layer needs examples of shape [channels, ...], its input has shape []");
}

TEST(Builtin, LeakyReluReadsItsSlope) {
  const Config options = Config::map({});
  EXPECT_EQ((*make("leaky_relu", options))(Tensor::full({1, 1}, -1.0f)).value().item(), -0.01f);
  EXPECT_EQ(options.required<double>("negative_slope"), 0.01);
  expect_throws<ConfigError>(
      [] {
        make("leaky_relu", Config::map({{"negative_slope", -1}}));
      },
      "negative_slope: expected a finite number of at least 0, found '-1'");
}

TEST(Builtin, AnUnknownKeyIsFoundAfterwards) {
  const Config options = Config::map({{"out_features", 3}, {"biass", true}});
  make("linear", options);
  expect_throws<ConfigError>([&] { options.require_all_read(); }, "biass");
}

}  // namespace
}  // namespace lacuna::builtin_test
