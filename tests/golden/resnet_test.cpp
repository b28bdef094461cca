// Whole ResNets against PyTorch: what they give in training and evaluation, every gradient, running
// statistics, steps of SGD, and trained weights on real images. Numbers agree to 1e-4 of the
// largest.
#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "golden/models.h"
#include "lacuna/framework/autograd/engine.h"
#include "lacuna/framework/autograd/ops/loss.h"
#include "lacuna/framework/inference/fold_batch_norm.h"
#include "lacuna/framework/train/model_file.h"

namespace lacuna {
namespace {

using golden::expect_near_largest;
using golden::ModelKind;

/// A network of the files with its first weights.
class GoldenResNet {
 public:
  explicit GoldenResNet(const std::string& name)
      : name_(name), file_(golden::open("models/" + name + ".h5")) {
    const std::string weights = golden::model_path(name + ".safetensors");
    const auto net = golden::CifarResNet::of(name, SafetensorsFile(weights));
    model_ = golden::build(net.yaml(), name, Shape{3, 32, 32});
    load_weights(weights, *model_);
  }

  void check_evaluation() {
    model_->eval();
    const NoGrad no_grad;
    const Variable output = (*model_)(input());
    expect_near_largest(output.value(), file_.read_floats("output_eval"), name_ + " output_eval");
    expect_loss(output, file_.attribute_number("/", "loss_eval"), "loss_eval");
  }

  void check_gradients() {
    model_->train();
    const Variable output = (*model_)(input());
    expect_near_largest(output.value(), file_.read_floats("output"), name_ + " output");
    const Variable loss = expect_loss(output, file_.attribute_number("/", "loss"), "loss");
    expect_running_statistics();
    backward(loss);
    std::set<std::string> missing;
    for (const ParameterPtr& parameter : model_->parameters()) missing.insert(parameter->name());
    for (const std::string& parameter : golden::cases(file_, "grad")) {
      expect_near_largest(model_->parameter(parameter)->gradient(),
                          file_.read_floats("grad/" + parameter), name_ + " grad/" + parameter);
      missing.erase(parameter);
    }
    EXPECT_TRUE(missing.empty()) << name_ << ": no gradient of " << *missing.begin();
  }

  // From the first weights on; training mode does not look at running statistics.
  void check_steps() {
    Sgd optimizer(model_->parameters(),
                  golden::sgd_options(file_.attribute_text("/", "optimizer")));
    optimizer.zero_grad();
    const std::vector<float> losses = file_.read_floats("losses").to_vector();
    ASSERT_FALSE(losses.empty()) << name_;
    for (size_t i = 0; i < losses.size(); ++i) {
      const Variable loss =
          expect_loss((*model_)(input()), losses[i], "loss before step " + std::to_string(i + 1));
      backward(loss);
      optimizer.step();
      optimizer.zero_grad();
    }
  }

  // Every weight but the last layer's, all of it, in the layout of sparse ones.
  GoldenResNet& as_csr() {
    for (const ParameterPtr& parameter : model_->parameters()) {
      if (parameter->use != WeightUse::Convolution) continue;
      const Shape& shape = parameter->shape();
      parameter->set_pattern(Pattern::make(csr_layout(), shape, Positions::all(shape)));
    }
    return *this;
  }

  GoldenResNet& folded() {
    const auto norms = std::ranges::count_if(
        model_->modules(), [](const Module* module) { return module->type() == "batch_norm"; });
    EXPECT_EQ(fold_batch_norm(*model_, Shape{3, 32, 32}), norms) << name_;
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
  Variable input() const { return Variable(file_.read_floats("pixel_values")); }

  Variable expect_loss(const Variable& output, double expected, const std::string& what) const {
    const IndexTensor labels(file_.shape("labels"), file_.read_integers("labels"));
    const Variable loss = cross_entropy(output, labels);
    EXPECT_NEAR(loss.value().item(), expected, 1e-4 * expected) << name_ << " " << what;
    return loss;
  }

  void expect_running_statistics() {
    const auto buffers = model_->buffers();
    EXPECT_EQ(golden::cases(file_, "after_forward").size(), buffers.size()) << name_;
    for (const auto& [name, values] : buffers) {
      expect_near_largest(*values, file_.read_floats("after_forward/" + name),
                          name_ + " after_forward/" + name);
    }
  }

  std::string name_;
  Hdf5File file_;
  std::unique_ptr<Sequential> model_;
};

TEST(GoldenResNets, TrainAndEvaluateAsInPyTorch) {
  for (const std::string& name : golden::models(ModelKind::ResNetTraining)) {
    GoldenResNet net(name);
    net.check_evaluation();
    net.check_gradients();
    net.check_steps();
    if (testing::Test::HasFatalFailure()) return;
  }
}

TEST(GoldenResNets, TrainedWeightsGiveTheirLogits) {
  for (const std::string& name : golden::models(ModelKind::ResNetInference)) {
    GoldenResNet(name).check_logits();
    if (testing::Test::HasFatalFailure()) return;
  }
}

TEST(GoldenResNets, TrainedWeightsGiveTheirLogitsWithBatchNormsFolded) {
  for (const std::string& name : golden::models(ModelKind::ResNetInference)) {
    GoldenResNet(name).folded().check_logits();
    GoldenResNet(name).as_csr().folded().check_logits();
    if (testing::Test::HasFatalFailure()) return;
  }
}

}  // namespace
}  // namespace lacuna
