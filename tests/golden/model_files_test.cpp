// The golden models' files themselves, and what the tests of models make of them.
#include <gmock/gmock.h>

#include "framework/kernels/test_values.h"
#include "golden/models.h"
#include "lacuna/framework/autograd/engine.h"
#include "lacuna/framework/autograd/ops/linear.h"
#include "paths.h"
#include "throws.h"

namespace lacuna::model_files_test {
namespace {

using golden::ModelKind;
using testing::UnorderedElementsAreArray;

TEST(GoldenModelFiles, AreToldByTheBeginningsOfTheirNames) {
  using golden::model_kind;
  EXPECT_EQ(model_kind("resnet8"), ModelKind::ResNetTraining);
  EXPECT_EQ(model_kind("resnet14_seed2"), ModelKind::ResNetTraining);
  EXPECT_EQ(model_kind("resnet20_cifar10"), ModelKind::ResNetInference);
  EXPECT_EQ(model_kind("resnet110_cifar10_b"), ModelKind::ResNetInference);
  EXPECT_EQ(model_kind("conv_trajectories"), ModelKind::Trajectories);
  EXPECT_EQ(model_kind("one_shot"), ModelKind::OneShot);
  for (const char* name : {"gpt2_tiny", "bert_tiny_seed3", "vit_small"}) {
    EXPECT_EQ(model_kind(name), ModelKind::Transformer);
  }
  for (const char* name : {"resnet", "gpt3_tiny", "my_resnet8", ""}) {
    EXPECT_EQ(model_kind(name), std::nullopt) << name;
  }
}

// The weights have the names that the model is written down with, and no others but counters.
TEST(GoldenModelFiles, ResNetsHaveTheNamesOfTheirLayers) {
  for (const ModelKind kind : {ModelKind::ResNetTraining, ModelKind::ResNetInference}) {
    for (const std::string& name : golden::models(kind)) {
      const SafetensorsFile file(golden::model_path(name + ".safetensors"));
      std::vector<std::string> names;
      for (const SafetensorsEntry& entry : file.tensors()) {
        if (!entry.name.ends_with(".num_batches_tracked")) names.push_back(entry.name);
      }
      const auto net = golden::CifarResNet::of(name, file);
      EXPECT_THAT(net.names(), UnorderedElementsAreArray(names)) << name;
      const Config section = parse_yaml(net.yaml(), name);
      EXPECT_EQ(section.get("layers").items().size(), 8u) << net.yaml();
      EXPECT_EQ(section.get("define").get("basic_block").get("layers").items().size(), 2u);
    }
  }
}

// 97 tensors, 269,722 parameters with the linear layer's, as in the project they come from.
TEST(GoldenModelFiles, ResNet20IsTheKnownOne) {
  const SafetensorsFile file(std::string(kSourceFolder) +
                             "/tests/golden/models/resnet20_cifar10.safetensors");
  int64_t parameters = 0;
  for (const SafetensorsEntry& entry : file.tensors()) {
    if (entry.name.find("running") == std::string::npos) parameters += entry.shape.numel();
    ASSERT_TRUE(entry.is_float()) << entry.name;
  }
  EXPECT_EQ(file.tensors().size(), 97u);
  EXPECT_EQ(parameters, 269722);
}

TEST(GoldenModelFiles, OptimizersAreReadFromTheTextThatTorchPrints) {
  const SgdOptions options = golden::sgd_options(
      "SGD ( Parameter Group 0     dampening: 0     differentiable: False     foreach: None     "
      "lr: 0.05     maximize: False     momentum: 0.9     nesterov: False     weight_decay: 0.0001 "
      ")");
  EXPECT_EQ(options.momentum, 0.9);
  EXPECT_FALSE(options.nesterov);
  EXPECT_EQ(options.weight_decay, 0.0001);
  expect_throws<DataError>([] { golden::sgd_options("SGD (maximize: False lr: 1)"); },
                           "no momentum in: SGD");
  const AdamWOptions adamw = golden::adamw_options(
      "AdamW ( amsgrad: False     betas: (0.9, 0.95)     eps: 1e-08     lr: 0.001     maximize: "
      "False     weight_decay: 0.01 )");
  EXPECT_EQ(adamw.betas[0], 0.9);
  EXPECT_EQ(adamw.betas[1], 0.95);
  EXPECT_EQ(adamw.eps, 1e-8);
  expect_throws<DataError>([] { golden::sgd_options("Adam (lr: 1)"); },
                           "not an optimizer that is known here: Adam");
}

// csr has the positions of a wide weight in tiles of columns: another folder's models may be wide.
TEST(GoldenModelFiles, GradientsAreComparedRowMajorHoweverTheirLayoutHasThem) {
  const Shape shape{40, 300};
  std::vector<float> expected;
  for (const Layout* layout : {&dense_layout(), &masked_layout(), &csr_layout()}) {
    const auto weight = std::make_shared<Parameter>(shape, Initializer());
    weight->set_name("weight");
    weight->assign(test::normal_tensor("weight", shape));
    weight->set_pattern(Pattern::make(*layout, shape, Positions::all(shape)));
    backward(linear(Variable(test::normal_tensor("x", {3, 300})), weight, Variable()),
             test::normal_tensor("dy", {3, 40}));
    const std::vector<float> found = golden::dense_gradient(*weight).to_vector();
    if (expected.empty()) expected = found;
    golden::expect_near(found, expected, std::string(layout->name()));
  }
}

TEST(GoldenModelFiles, PixelsAreNormalizedByChannel) {
  const Tensor pixels = Tensor::from({1, 2, 1, 2}, std::vector<float>{0, 255, 51, 102});
  const Tensor mean = Tensor::from({2}, std::vector<float>{0.5, 0.2});
  const Tensor std = Tensor::from({2}, std::vector<float>{0.5, 0.1});
  golden::expect_near_largest(golden::normalized(pixels, mean, std),
                              Tensor::from({1, 2, 1, 2}, std::vector<float>{-1, 1, 0, 2}), "pixels",
                              1e-6f);
}

}  // namespace
}  // namespace lacuna::model_files_test
