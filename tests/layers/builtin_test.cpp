#include "lacuna/layers/builtin.h"

#include <gmock/gmock.h>

#include "lacuna/framework/core/error.h"
#include "lacuna/layers/gelu.h"
#include "lacuna/layers/linear.h"
#include "throws.h"

namespace lacuna {
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
              ElementsAre("dropout", "flatten", "gelu", "layer_norm", "linear", "relu",
                          "semi_sparse_activation", "sigmoid", "silu", "squared_relu", "tanh"));
  for (const auto& [name, entry] : registry().entries()) {
    const Config options = Config::map({{"out_features", 3}});
    EXPECT_EQ(entry.make(options, {20})->type(), name);
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

TEST(Builtin, AnUnknownKeyIsFoundAfterwards) {
  const Config options = Config::map({{"out_features", 3}, {"biass", true}});
  make("linear", options);
  expect_throws<ConfigError>([&] { options.require_all_read(); }, "biass");
}

}  // namespace
}  // namespace lacuna
