// Layers of images as a configuration says them: their options, what is inferred, and what bad
// input gets.
#include <gmock/gmock.h>

#include <memory>
#include <string>
#include <vector>

#include "framework/train/tiny_convolution.h"
#include "lacuna/framework/core/error.h"
#include "lacuna/framework/io/yaml.h"
#include "lacuna/framework/nn/module_rows.h"
#include "lacuna/framework/train/builtins.h"
#include "lacuna/framework/train/model_builder.hpp"
#include "lacuna/layers/batch_norm.h"
#include "lacuna/layers/convolutions/conv2d.h"
#include "throws.h"

namespace lacuna::image_layers_test {
namespace {

using testing::ElementsAre;

const Shape kImage{3, 8, 6};

std::unique_ptr<Sequential> build(const std::string& yaml, const Shape& shape = kImage) {
  register_builtins();
  const Config model = parse_yaml(yaml, "m.yaml");
  auto built = build_model(model_layers(model), shape);
  model.require_all_read();
  return built;
}

// What the model is resolved to.
std::string resolved(const std::string& yaml, const Shape& shape = kImage) {
  register_builtins();
  const Config model = parse_yaml(yaml, "m.yaml");
  build_model(model_layers(model), shape);
  return model.to_json();
}

void refuses(const std::string& yaml, const std::string& message, const Shape& shape = kImage) {
  expect_throws<ConfigError>([&] { build(yaml, shape); }, message);
}

const Conv2d& conv_of(const Sequential& model) {
  return static_cast<const Conv2d&>(*model.children()[0].second);
}

TEST(ImageLayers, AConvolutionTakesSizesAsANumberOrHeightAndWidth) {
  const auto model = build(
      "[{type: conv2d, out_channels: 4, kernel: [3, 2], stride: [2, 1], padding: [1, 0], dilation: "
      "[1, 2], bias: false}]");
  const Conv2d& conv = conv_of(*model);
  EXPECT_EQ(conv.weight()->shape(), (Shape{4, 3, 3, 2}));
  EXPECT_EQ(conv.bias(), nullptr);
  const Window window{.kernel = {3, 2}, .stride = {2, 1}, .padding = {1, 0}, .dilation = {1, 2}};
  EXPECT_EQ(conv.weight()->convolution->window, window);
  EXPECT_EQ(conv.weight()->convolution->image, (Extent{8, 6}));
  EXPECT_EQ(model->output_shape(kImage), (Shape{4, 4, 4}));
  const auto square = build("[{type: conv2d, out_channels: 6, kernel: 3, padding: 1, groups: 3}]");
  EXPECT_EQ(conv_of(*square).weight()->shape(), (Shape{6, 1, 3, 3}));
  EXPECT_EQ(square->output_shape(kImage), (Shape{6, 8, 6}));
}

TEST(ImageLayers, DefaultsComeIntoTheResolvedConfiguration) {
  const std::string conv = resolved("[{type: conv2d, out_channels: 4, kernel: 3}]");
  for (const char* words : {"\"stride\": 1", "\"padding\": 0", "\"dilation\": 1", "\"groups\": 1",
                            "\"in_channels\": 3", "\"bias\": true"}) {
    EXPECT_THAT(conv, testing::HasSubstr(words));
  }
  const std::string norm = resolved("[{type: batch_norm}]");
  for (const char* words : {"\"channels\": 3", "\"momentum\": 0.1", "\"affine\": true",
                            "\"track_running_stats\": true"}) {
    EXPECT_THAT(norm, testing::HasSubstr(words));
  }
  EXPECT_THAT(resolved("[{type: max_pool, kernel: 2}]"), testing::HasSubstr("\"stride\": 2"));
  EXPECT_THAT(resolved("[{type: avg_pool, kernel: 2}]"),
              testing::HasSubstr("\"count_include_pad\": true"));
}

// What was resolved builds the same and resolves to itself.
TEST(ImageLayers, TheResolvedConfigurationIsItsOwn) {
  const std::string yaml =
      "[{type: conv2d, out_channels: 4, kernel: [3, 2], padding: 1}, batch_norm, relu, {type: "
      "max_pool, kernel: [2, 3]}, {type: residual, layers: [{type: conv2d, out_channels: 8, "
      "kernel: 3, stride: 2, padding: 1}], shortcut: subsample_pad}, global_average_pool]";
  const std::string once = resolved(yaml);
  EXPECT_EQ(resolved(once), once);
  EXPECT_EQ(build(once)->output_shape(kImage), build(yaml)->output_shape(kImage));
}

TEST(ImageLayers, PoolingTakesTheKernelAsItsStride) {
  EXPECT_EQ(build("[{type: max_pool, kernel: 2}]")->output_shape(kImage), (Shape{3, 4, 3}));
  EXPECT_EQ(build("[{type: max_pool, kernel: [2, 3]}]")->output_shape(kImage), (Shape{3, 4, 2}));
  EXPECT_EQ(build("[{type: avg_pool, kernel: 3, stride: 1, padding: 1}]")->output_shape(kImage),
            kImage);
  EXPECT_EQ(
      build("[{type: max_pool, kernel: 2, dilation: 3, stride: [1, 2]}]")->output_shape(kImage),
      (Shape{3, 5, 2}));
  EXPECT_EQ(build("[global_average_pool]")->output_shape(kImage), (Shape{3}));
}

TEST(ImageLayers, BatchNormTakesVectorsSequencesAndImages) {
  for (const Shape& shape : {Shape{3}, Shape{3, 5}, Shape{3, 5, 2}}) {
    const auto model = build("[{type: batch_norm, eps: 0.001, momentum: 0.2}]", shape);
    EXPECT_EQ(model->output_shape(shape), shape);
    EXPECT_EQ(model->buffers().size(), 2u);
  }
  EXPECT_TRUE(build("[{type: batch_norm, affine: false}]")->parameters().empty());
  EXPECT_TRUE(build("[{type: batch_norm, track_running_stats: false}]")->buffers().empty());
  EXPECT_FALSE(build("[{type: batch_norm, trainable: false}]")->parameters()[0]->trainable);
}

TEST(ImageLayers, ChannelsAndGroupsThatDoNotFitAreNamed) {
  refuses(
      "- relu\n- {type: conv2d, out_channels: 4, kernel: 3, groups: 2}\n",
      "m.yaml:2:54: 1.groups: 2 groups do not divide the channels: 3 in (shape [3, 8, 6]), 4 out");
  refuses("[{type: conv2d, out_channels: 4, kernel: 3, groups: 3}]",
          "0.groups: 3 groups do not divide the channels: 3 in (shape [3, 8, 6]), 4 out");
  refuses("- relu\n- {type: conv2d, name: stem, in_channels: 4, out_channels: 4, kernel: 3}\n",
          "m.yaml:2:3: 1: layer 'stem' (conv2d) does not fit layer 'relu1' (relu) at m.yaml:1:3, "
          "which gives shape [3, 8, 6] per example: in_channels is 4, but the examples that reach "
          "this layer have shape [3, 8, 6]");
  refuses("[flatten, {type: conv2d, out_channels: 4, kernel: 3}]",
          "layer 'conv2d1' (conv2d) does not fit layer 'flatten1' (flatten) at m.yaml:1:2, which "
          "gives shape [144] per example: this layer needs examples of shape [channels, height, "
          "width], its input has shape [144]");
}

TEST(ImageLayers, ImagesSmallerThanTheKernelAreNamed) {
  const char* large = "- {type: conv2d, name: stem, out_channels: 4, kernel: 7}\n";
  refuses(large,
          "m.yaml:1:3: 0: layer 'stem' (conv2d) does not fit the data, which gives shape [3, "
          "8, 6] per example: a kernel of 7x7 does not fit an image of 8x6 with padding 0x0");
  refuses("[{type: conv2d, out_channels: 4, kernel: 3, dilation: [1, 4], padding: [0, 1]}]",
          "a kernel of 3x3 with dilation 1x4 does not fit an image of 8x6 with padding 0x1");
  refuses("[{type: max_pool, kernel: 2}, {type: avg_pool, name: last, kernel: [2, 4]}]",
          "m.yaml:1:31: 1: layer 'last' (avg_pool) does not fit layer 'max_pool1' (max_pool) at "
          "m.yaml:1:2, which gives shape [3, 4, 3] per example: a kernel of 2x4 does not fit an "
          "image of 4x3 with padding 0x0");
}

TEST(ImageLayers, SizesThatAreNoneAreNamedWhereTheyStand) {
  const auto refused = [](const std::string& options, const std::string& message) {
    refuses("- {type: conv2d, out_channels: 4, kernel: 3, " + options + "}\n", message);
  };
  refused("stride: 0", "m.yaml:1:54: 0.stride: expected numbers from 1 to 1048576, found '0'");
  refused("stride: [1, 0]",
          "m.yaml:1:54: 0.stride: expected numbers from 1 to 1048576, found [1, 0]");
  refused("padding: -1", "0.padding: expected numbers from 0 to 1048576, found '-1'");
  refused("padding: 2000000", "0.padding: expected numbers from 0 to 1048576, found '2000000'");
  refused("dilation: 0", "0.dilation: expected numbers from 1 to 1048576, found '0'");
  refused("stride: [1, 2, 3]", "0.stride: expected a number, or [height, width], found");
  refused("stride: [1]", "0.stride: expected a number, or [height, width], found");
  refused("stride: []", "0.stride: expected a number, or [height, width], found");
  refused("stride: 1.5", "0.stride: expected an integer, found '1.5'");
  refused("stride: [1, x]", "expected an integer, found 'x'");
  refused("stride: fast", "0.stride: expected an integer, found 'fast'");
  refused("stride: {height: 1}", "0.stride: expected an integer, found");
  refused("groups: 0", "0.groups: expected an integer of at least 1, found '0'");
  refused("groups: -2", "0.groups: expected an integer of at least 1, found '-2'");
  refused("bias: maybe", "m.yaml:1:52: 0.bias: expected true or false, found 'maybe'");
  refused("init: xavier",
          "m.yaml:1:52: 0.init: unknown initialization 'xavier'; valid names: default, ");
  refused("strides: 2", "0.strides: unknown key 'strides'; did you mean 'stride'?");
  refuses("[{type: conv2d, out_channels: 4, kernel: 0}]",
          "0.kernel: expected numbers from 1 to 1048576, found '0'");
  refuses("[{type: conv2d, out_channels: 0, kernel: 3}]",
          "0.out_channels: expected an integer of at least 1, found '0'");
  refuses("[{type: conv2d, out_channels: -4, kernel: 3}]",
          "0.out_channels: expected an integer of at least 1, found '-4'");
  refuses("[{type: conv2d, kernel: 3}]", "m.yaml:1:2: 0.out_channels: a required key is missing");
  refuses("[{type: conv2d, out_channels: 4}]", "m.yaml:1:2: 0.kernel: a required key is missing");
  refuses("[{type: conv2d, out_channels: 4, kernel: null}]",
          "m.yaml:1:42: 0.kernel: a required key is missing");
  refuses("[{type: conv2d, out_chanels: 4, kernel: 3}]",
          "m.yaml:1:30: 0.out_chanels: unknown key 'out_chanels'; did you mean 'out_channels', "
          "which is required and missing?");
  refuses("[{typ: relu}]",
          "unknown key 'typ'; did you mean 'type', which is required and missing?");
  refuses("[{type: max_pool}]", "m.yaml:1:2: 0.kernel: a required key is missing");
  refuses("[relu, max_pool]", "m.yaml:1:8: 1.kernel: a required key is missing");
  refuses("[{type: avg_pool, stride: 2}]", "m.yaml:1:2: 0.kernel: a required key is missing");
}

TEST(ImageLayers, BatchNormsOptionsAreChecked) {
  refuses("[{type: batch_norm, channels: 4}]",
          "m.yaml:1:2: 0: layer 'batch_norm1' (batch_norm) does not fit the data, which gives "
          "shape [3, 8, 6] per example: 4 channels need examples of shape [4], [4, length] or [4, "
          "height, width], found [3, 8, 6]");
  refuses("[{type: batch_norm, eps: 0}]", "0.eps: expected a number above 0, found '0'");
  refuses("[{type: batch_norm, eps: .nan}]", "m.yaml:1:26: 0.eps: expected a number, found '.nan'");
  refuses("[{type: batch_norm, momentum: 1.5}]",
          "0.momentum: expected a number in [0, 1], found '1.5'");
  refuses("[{type: batch_norm, momentum: null}]",
          "0.momentum: null, the average over all batches in PyTorch, is not supported");
  refuses("[{type: batch_norm, momentum: .nan}]",
          "m.yaml:1:31: 0.momentum: expected a number, found '.nan'");
  refuses("[{type: batch_norm, affine: 2}]",
          "m.yaml:1:29: 0.affine: expected true or false, found '2'");
  refuses("[{type: batch_norm, track_running_stat: true}]", "did you mean 'track_running_stats'?");
  refuses("[batch_norm]", "[2, 3, 4, 5]", {2, 3, 4, 5});
  refuses("[batch_norm]", "its input has shape []", {});
}

TEST(ImageLayers, AnEpsThatIsTooLargeIsNamedWhereItStands) {
  for (const char* norm : {"batch_norm", "layer_norm", "group_norm, groups: 3"}) {
    for (const char* eps : {"1e40", ".inf"}) {
      refuses("[{type: " + std::string(norm) + ", eps: " + eps + "}]",
              "0.eps: expected a number of at most 1e30, found '" + std::string(eps) + "'");
    }
  }
}

TEST(ImageLayers, ActivationsThatAreThinnedMustBeDivisible) {
  refuses(
      "[{type: semi_sparse_activation, name: thin, m: 5}]",
      "layer 'thin' (semi_sparse_activation) does not fit the data, which gives shape [3, 8, 6] "
      "per example: activations of shape [3, 8, 6] have 3 channels, not divisible by m = 5");
}

TEST(ImageLayers, PoolingNeedsImages) {
  refuses("[flatten, {type: max_pool, kernel: 2}]",
          "per example: needs examples of shape [channels, height, width] or [channels, "
          "length], found [144]");
  refuses("[flatten, global_average_pool]",
          "per example: needs examples of shape [channels, height, width] or [channels, "
          "length], found [144]");
  refuses("[flatten, subsample_pad]", "needs examples of shape [channels, height, width]");
}

// Where a window could lie on padding alone: when the model is built, not in the first step.
TEST(ImageLayers, PoolingRefusesMorePaddingThanHalfOfTheKernel) {
  for (const char* type : {"max_pool", "avg_pool"}) {
    refuses("[{type: " + std::string(type) + ", kernel: 2, padding: 2}]",
            "per example: padding 2x2 is more than half of the kernel 2x2");
  }
}

TEST(ImageLayers, AShortcutWithoutWeightsTakesItsSizesFromTheLayersBesideIt) {
  const std::string model =
      "[{type: residual, layers: [{type: conv2d, out_channels: 8, kernel: 3, stride: [2, 3], "
      "padding: 1}], shortcut: subsample_pad}]";
  EXPECT_EQ(build(model)->output_shape(kImage), (Shape{8, 4, 2}));
  // What is given is taken.
  refuses(
      "[{type: residual, layers: [{type: conv2d, out_channels: 8, kernel: 3, stride: 2, padding: "
      "1}], shortcut: {type: subsample_pad, stride: 1}}]",
      "adds shapes that differ: [8, 4, 3] per example, which its layers give");
  refuses(
      "[{type: residual, layers: [{type: conv2d, out_channels: 8, kernel: 3, stride: 2, padding: "
      "1}], shortcut: {type: subsample_pad, channels: 7}}]",
      "and [7, 4, 3], which its shortcut gives");
  refuses(
      "[{type: residual, layers: [{type: conv2d, out_channels: 2, kernel: 3, padding: 1}], "
      "shortcut: {type: subsample_pad}}]",
      "layer 'subsample_pad1' (subsample_pad) does not fit the data, which gives shape [3, 8, 6] "
      "per example: needs a stride of at least 1 and at least the 3 channels of its input [3, 8, "
      "6], found stride 1x1 and 2 channels");
}

// Behind a pooling the shortcut has the layers' size already.
TEST(ImageLayers, AShortcutTakesItsStrideFromWhatReachesIt) {
  const auto model = build(
      "[{type: residual, layers: [{type: conv2d, out_channels: 8, kernel: 3, stride: 2, padding: "
      "1}], shortcut: [{type: avg_pool, kernel: 2}, subsample_pad]}]");
  EXPECT_EQ(model->output_shape(kImage), (Shape{8, 4, 3}));
  // And before another layer it takes the layers' size.
  const auto normed = build(
      "[{type: residual, layers: [{type: conv2d, out_channels: 8, kernel: 3, stride: 2, padding: "
      "1}], shortcut: [subsample_pad, batch_norm]}]");
  EXPECT_EQ(normed->output_shape(kImage), (Shape{8, 4, 3}));
}

const std::string kBlocks = std::string(kBasicBlock) + R"(  layers:
    - {type: block, name: layer1, repeat: 2, channels: 6}
    - {type: block, name: layer2, repeat: 2, channels: 10, first: {stride: 2}}
    - {type: block, name: layer3, channels: 11, stride: [3, 1]}
)";

// Each use of a template has a shortcut of its own sizes.
TEST(ImageLayers, AShortcutInATemplateFitsEachUse) {
  const auto model = build(kBlocks);
  EXPECT_EQ(model->output_shape(kImage), (Shape{11, 2, 3}));
  std::vector<std::string> used;
  for (const ModuleRow& row : module_rows(*model, kImage)) {
    if (row.module->type() != "residual") continue;
    used.push_back(row.module->description());
  }
  EXPECT_THAT(used, ElementsAre("shortcut: subsample_pad subsample_pad1", "shortcut: identity",
                                "shortcut: subsample_pad subsample_pad1", "shortcut: identity",
                                "shortcut: subsample_pad subsample_pad1"));
  const std::string once = resolved(kBlocks);
  EXPECT_EQ(resolved(once), once);
  EXPECT_EQ(build(once)->output_shape(kImage), (Shape{11, 2, 3}));
}

TEST(ImageLayers, AnErrorInATemplateSaysInWhichUse) {
  std::string text = kBlocks;
  text += "    - {type: block, name: layer4, channels: 12, stride: 0}\n";
  refuses(text,
          "m.yaml:19:57: define.block.layers.0.layers.0.stride: expected numbers from 1 to "
          "1048576, found '0'; within layer 'layer4' (block) at m.yaml:19:7");
}

}  // namespace
}  // namespace lacuna::image_layers_test
