#include "lacuna/framework/nn/path_clash.hpp"

#include <gtest/gtest.h>

#include <string>

#include "lacuna/framework/core/error.h"
#include "lacuna/framework/nn/sequential.h"
#include "lacuna/layers/activations.h"
#include "lacuna/layers/linear.h"
#include "lacuna/layers/residual.h"
#include "lacuna/layers/tokens/class_token.h"
#include "throws.h"

namespace lacuna::path_clash_test {
namespace {

const Linear::Options kSquare{.in_features = 4, .out_features = 4};

TEST(ModuleName, MayHaveDotsButNoEmptyParts) {
  for (const char* name : {"a", "a.b", "attn.c_attn.0", "a b"}) {
    EXPECT_NO_THROW(require_module_name(name)) << name;
  }
  for (const char* name : {"", ".", ".a", "a.", "a..b", "a/b"}) {
    expect_throws<StateError>(
        [&] { require_module_name(name); },
        std::string("a module's name must be text (UTF-8) between single dots, "
                    "without '/', found '") +
            name + "'");
  }
}

TEST(PathClash, OfModulesThatMeetInOnePath) {
  Sequential model;
  model.add<Sequential>("a").add<ReLU>("b");
  expect_throws<StateError>([&] { model.add<ReLU>("a.b"); },
                            "the path of the module 'a.b' is that of the module 'a.b' of the same "
                            "model, or runs through it; give one of the layers another name");
  EXPECT_EQ(model.children().size(), 1u);
  EXPECT_NO_THROW(model.add<ReLU>("a.c"));
}

TEST(PathClash, OfALayerBelowAParameter) {
  Sequential model;
  model.add<Linear>("fc", kSquare);
  expect_throws<StateError>([&] { model.add<ReLU>("fc.weight"); },
                            "the path of the module 'fc.weight' is that of the parameter "
                            "'fc.weight'");
  expect_throws<StateError>([&] { model.add<ReLU>("fc.weight.act"); },
                            "the path of the module 'fc.weight.act' is that of the parameter "
                            "'fc.weight'");
  Sequential other;
  other.add<ReLU>("fc.bias.act");
  expect_throws<StateError>([&] { other.add<Linear>("fc", kSquare); },
                            "the path of the module 'fc.bias.act' is that of the parameter "
                            "'fc.bias'");
}

// A residual's layers stand on the level of the residual, and may be added after it.
TEST(PathClash, ReachesThroughGroupsWithoutALevel) {
  Sequential model;
  auto& block = model.add<Sequential>("block");
  block.add<Linear>("fc", kSquare);
  auto& residual = block.add<Residual>("residual");
  expect_throws<StateError>([&] { residual.add<Linear>("fc", kSquare); },
                            "the path of the module 'block.fc' is that of the module 'block.fc'");
  residual.add<Linear>("fc2", kSquare);
  expect_throws<StateError>([&] { block.add<ReLU>("fc2"); }, "'block.fc2'");
  auto late = std::make_unique<Residual>();
  late->add<Linear>("fc2", kSquare);
  expect_throws<StateError>([&] { block.add("late", std::move(late)); }, "'block.fc2'");
  EXPECT_EQ(model.parameters().size(), 4u);
}

// A layer that is nothing but a parameter has its path.
TEST(PathClash, OfALayerBelowABareParameter) {
  Sequential model;
  model.add<ClassToken>("vit.cls_token", {.features = 2});
  EXPECT_EQ(model.parameters()[0]->name(), "vit.cls_token");
  EXPECT_EQ(model.parameter("vit.cls_token")->shape(), (Shape{1, 1, 2}));
  expect_throws<StateError>([&] { model.add<ReLU>("vit.cls_token.act"); },
                            "the path of the module 'vit.cls_token.act' is that of the parameter "
                            "'vit.cls_token'");
  EXPECT_NO_THROW(model.add<ReLU>("vit.act"));
}

}  // namespace
}  // namespace lacuna::path_clash_test
