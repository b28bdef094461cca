// Whole ResNets against PyTorch: what they give in training and evaluation, every gradient, running
// statistics, steps of SGD, and trained weights on real images; with the convolutions' weights as
// they are, masked and in csr, all positions held. Numbers agree to 1e-4 of the largest.
#include <gtest/gtest.h>

#include <algorithm>
#include <iostream>
#include <string>
#include <vector>

#include "golden/models.h"
#include "lacuna/framework/autograd/engine.h"
#include "lacuna/framework/autograd/ops/loss.h"
#include "lacuna/framework/inference/fold_batch_norm.hpp"
#include "lacuna/framework/layouts/layout.h"
#include "lacuna/framework/layouts/pattern.h"
#include "lacuna/framework/train/weights/model_file.h"

namespace lacuna::resnet_test {
namespace {

using golden::Arrays;
using golden::differences;
using golden::expect_near_largest;
using golden::ModelKind;

/// Which network of the files, and how its convolutions' weights are stored, all positions held.
struct NetworkKey {
  std::string name;
  const Layout* layout = &dense_layout();
  /// Not 0: every weight is multiplied by a number within 1e-6 of one, drawn by this.
  uint64_t nudge = 0;

  std::string text() const { return name + ", " + std::string(layout->name()); }
};

/// A network of the files with its first weights.
class GoldenResNet {
 public:
  explicit GoldenResNet(const NetworkKey& key)
      : name_(key.text()), file_(golden::open("models/" + key.name + ".h5")) {
    const std::string weights = golden::model_path(key.name + ".safetensors");
    const auto net = golden::CifarResNet::of(key.name, SafetensorsFile(weights));
    const Shape images = file_.shape(file_.exists("images") ? "images" : "pixel_values");
    example_shape_ = images.without_batch();
    model_ = golden::build(net.yaml(), key.name, example_shape_);
    load_weights(weights, *model_);
    if (key.nudge != 0) golden::nudge(*model_, key.nudge);
    if (key.layout != &dense_layout()) hold_in(*key.layout);
  }

  void check_evaluation() {
    model_->eval();
    const NoGrad no_grad;
    const Variable output = (*model_)(input());
    expect_near_largest(output.value(), file_.read_floats("output_eval"), name_ + " output_eval");
    expect_loss(output, file_.attribute_number("/", "loss_eval"), "loss_eval");
  }

  void check_forward() {
    model_->train();
    const Variable output = (*model_)(input());
    expect_near_largest(output.value(), file_.read_floats("output"), name_ + " output");
    expect_loss(output, file_.attribute_number("/", "loss"), "loss");
    const auto buffers = model_->buffers();
    EXPECT_EQ(golden::cases(file_, "after_forward").size(), buffers.size()) << name_;
    for (const auto& [name, values] : buffers) {
      expect_near_largest(*values, file_.read_floats("after_forward/" + name),
                          name_ + " after_forward/" + name);
    }
  }

  /// By name every gradient of the first step, and the loss before each of the steps.
  Arrays train() {
    model_->train();
    Sgd optimizer(model_->parameters(),
                  golden::sgd_options(file_.attribute_text("/", "optimizer")));
    Arrays all;
    for (size_t i = 0; i < number_of_steps(); ++i) {
      const Variable loss = loss_of((*model_)(input()));
      all[loss_name(i)] = {loss.value().item()};
      backward(loss);
      for (const ParameterPtr& parameter : model_->parameters()) {
        if (i == 0) all[parameter->name()] = dense_gradient(*parameter);
      }
      optimizer.step();
      optimizer.zero_grad();
    }
    return all;
  }

  /// What the file has of these.
  Arrays expected() const {
    Arrays all;
    for (const std::string& parameter : golden::cases(file_, "grad")) {
      all[parameter] = file_.read_floats("grad/" + parameter).to_vector();
    }
    const std::vector<float> losses = file_.read_floats("losses").to_vector();
    EXPECT_FALSE(losses.empty()) << name_;
    for (size_t i = 0; i < losses.size(); ++i) all[loss_name(i)] = {losses[i]};
    return all;
  }

  GoldenResNet& folded() {
    const auto norms = std::ranges::count_if(
        model_->modules(), [](const Module* module) { return module->type() == "batch_norm"; });
    EXPECT_EQ(fold_batch_norm(*model_, example_shape_), norms) << name_;
    return *this;
  }

  void check_logits() {
    model_->eval();
    const NoGrad no_grad;
    const Tensor images = golden::normalized(file_.read_floats("images"), file_.read_floats("mean"),
                                             file_.read_floats("std"));
    expect_near_largest((*model_)(images).value(), file_.read_floats("logits"), name_ + " logits");
  }

 private:
  static std::string loss_name(size_t step) {
    return "the loss before step " + std::to_string(step + 1);
  }

  static std::vector<float> dense_gradient(const Parameter& parameter) {
    const Pattern& pattern = *parameter.pattern();
    const Tensor gradient = parameter.gradient().to(Order::RowMajor);
    return pattern.layout().to_dense(pattern, gradient.storage()).to_vector();
  }

  size_t number_of_steps() const { return static_cast<size_t>(file_.shape("losses").numel()); }

  Variable input() const { return Variable(file_.read_floats("pixel_values")); }

  Variable loss_of(const Variable& output) const {
    return cross_entropy(output, IndexTensor(file_.shape("labels"), file_.read_integers("labels")));
  }

  void expect_loss(const Variable& output, double expected, const std::string& what) const {
    EXPECT_NEAR(loss_of(output).value().item(), expected, 1e-4 * expected) << name_ << " " << what;
  }

  void hold_in(const Layout& layout) {
    int held = 0;
    for (const ParameterPtr& parameter : model_->parameters()) {
      if (parameter->use != WeightUse::Convolution) continue;
      const Shape& shape = parameter->shape();
      parameter->set_pattern(
          Pattern::make(layout, shape, Positions::all(shape), parameter->pattern()->lifetime()));
      ++held;
    }
    EXPECT_GT(held, 0) << name_;
  }

  std::string name_;
  Hdf5File file_;
  Shape example_shape_;
  std::unique_ptr<Sequential> model_;
};

/// Gradients and losses of steps. A rectifier's input may be so near to zero that the last bits of
/// float32 say whether it passes the gradient on: so it is in one of ten networks of 8 layers, and
/// in one of two of 20, where PyTorch has another gradient in float64, too. Where arrays of another
/// folder differ, they may therefore by twice of what weights that are changed in the last bits
/// make of them. The project's own files need none of this.
void check_training(const NetworkKey& key) {
  GoldenResNet net(key);
  net.check_forward();
  const Arrays found = GoldenResNet(key).train(), expected = net.expected();
  std::string wrong = differences(found, expected, {});
  if (!wrong.empty() && golden::is_another_folder()) {
    std::cout << key.text() << ": to be compared with what the last bits make of it\n" << wrong;
    std::vector<Arrays> nudged;
    for (uint64_t nudge = 1; nudge <= 8; ++nudge) {
      nudged.push_back(GoldenResNet({key.name, key.layout, nudge}).train());
    }
    wrong = differences(found, expected, nudged);
  }
  EXPECT_EQ(wrong, "") << key.text();
}

const std::vector<const Layout*> kLayouts = {&dense_layout(), &masked_layout(), &csr_layout()};

TEST(GoldenResNets, TrainAndEvaluateAsInPyTorch) {
  for (const std::string& name : golden::models(ModelKind::ResNetTraining)) {
    for (const Layout* layout : kLayouts) {
      const NetworkKey key{.name = name, .layout = layout};
      GoldenResNet(key).check_evaluation();
      check_training(key);
    }
  }
}

TEST(GoldenResNets, TrainedWeightsGiveTheirLogits) {
  for (const std::string& name : golden::models(ModelKind::ResNetInference)) {
    for (const Layout* layout : kLayouts) {
      GoldenResNet({.name = name, .layout = layout}).check_logits();
      GoldenResNet({.name = name, .layout = layout}).folded().check_logits();
    }
  }
}

}  // namespace
}  // namespace lacuna::resnet_test
