// Twenty steps of training with each algorithm and optimizer against the reference implementation:
// masks exactly, values and optimizer states to 1e-4 of their largest magnitude.
#include <cstdio>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "golden/models.h"
#include "lacuna/framework/autograd/engine.h"
#include "lacuna/framework/autograd/ops/loss.h"
#include "lacuna/framework/io/yaml.h"
#include "lacuna/framework/nn/sequential.h"
#include "lacuna/optimizers/optimizer_registry.h"
#include "lacuna/sparsity/configure.h"

namespace lacuna {
namespace {

/// What a file's networks are: layers, their sizes as the first weights of a group have them.
using Network = std::string (*)(const Hdf5File& file, const std::string& group);

std::string mlp(const Hdf5File& file, const std::string& group) {
  const auto rows = [&](const std::string& layer) {
    return std::to_string(file.shape(group + "/initial/" + layer + ".weight")[0]);
  };
  return "- {type: linear, name: fc1, out_features: " + rows("fc1") +
         "}\n"
         "- relu\n"
         "- {type: linear, name: fc2, out_features: " +
         rows("fc2") + "}\n";
}

std::string convolutions(const Hdf5File& file, const std::string& group) {
  const auto shape = [&](const std::string& layer) {
    return file.shape(group + "/initial/" + layer + ".weight");
  };
  const auto convolution = [&](const std::string& layer, const std::string& further) {
    const Shape weight = shape(layer);
    return "- {type: conv2d, name: " + layer + ", out_channels: " + std::to_string(weight[0]) +
           ", kernel: " + std::to_string(weight[2]) +
           ", padding: " + std::to_string(weight[2] / 2) + further + "}\n- relu\n";
  };
  return convolution("conv1", "") + convolution("conv2", ", stride: 2, bias: false") +
         "- global_average_pool\n"
         "- {type: linear, name: fc, out_features: " +
         std::to_string(shape("fc")[0]) + "}\n";
}

/// One trajectory: a network, trained as the group's attributes say.
class Trajectory {
 public:
  Trajectory(const Hdf5File& file, const std::string& group, Network network,
             const std::string& layout)
      : file_(file),
        group_(group),
        x_(file.read_floats(group + "/x")),
        owned_(golden::build(network(file, group), group, x_.shape().without_batch())),
        model_(*owned_) {
    for (const ParameterPtr& parameter : model_.parameters()) {
      parameter->assign(file.read_floats(group + "/initial/" + parameter->name()));
    }
    Config sparsity = parse_yaml(file.attribute_text(group, "sparsity_config"), group);
    const Config optimizer = parse_yaml(file.attribute_text(group, "optimizer_config"), group);
    optimizer_ = make_optimizer(optimizer, model_.parameters());
    set_layout(sparsity, layout);
    sparsity_ = configure(sparsity, 0);
    sparsity.require_all_read();
    optimizer.require_all_read();
    model_.apply(*sparsity_);
    optimizer_->apply(*sparsity_);
    labels_ = IndexTensor(Shape{x_.shape()[0]}, file.read_integers(group + "/labels"));
    losses_ = file.read_floats(group + "/loss").to_vector();
  }

  void check() {
    expect_masks(group_ + "/initial");
    ASSERT_FALSE(losses_.empty()) << group_;
    for (size_t i = 0; i < losses_.size(); ++i) {
      const Variable loss = cross_entropy(model_(Variable(x_)), labels_);
      ASSERT_NEAR(loss.value().item(), losses_[i], 1e-4f) << group_ << " before step " << i + 1;
      backward(loss);
      optimizer_->step();
      optimizer_->zero_grad();
      char name[8];
      std::snprintf(name, sizeof name, "%02d", static_cast<int>(i + 1));
      expect_after_step(group_ + "/after_step/" + name);
      if (testing::Test::HasFatalFailure()) return;
    }
  }

 private:
  static void set_layout(Config& sparsity, const std::string& layout) {
    if (sparsity.is_list()) {
      for (Config& entry : sparsity.items()) entry.set("layout", layout);
    } else {
      sparsity.set("layout", layout);
    }
  }

  void expect_masks(const std::string& where) {
    int masks = 0;
    for (const std::string& name : file_.children(where)) {
      if (!name.ends_with("_mask")) continue;
      ++masks;
      const ParameterPtr parameter = model_.parameter(name.substr(0, name.size() - 5));
      ASSERT_EQ(parameter->mask().values, file_.read_bytes(where + "/" + name))
          << where << "/" << name;
      values_are_zero_outside(*parameter, where);
    }
    EXPECT_EQ(masks, static_cast<int>(sparsity_->parameters().size())) << where;
  }

  static void values_are_zero_outside(const Parameter& parameter, const std::string& where) {
    const std::vector<float> values = parameter.to_dense().to_vector();
    const ByteArray mask = parameter.mask();
    for (size_t i = 0; i < values.size(); ++i) {
      ASSERT_TRUE(mask.values[i] != 0 || values[i] == 0.0f) << where << " " << parameter.name();
    }
  }

  void expect_after_step(const std::string& where) {
    expect_masks(where);
    for (const std::string& name : file_.children(where)) {
      if (name == "state") {
        expect_states(where + "/state");
      } else if (!name.ends_with("_mask")) {
        golden::expect_near_largest(model_.parameter(name)->to_dense(),
                                    file_.read_floats(where + "/" + name), where + "/" + name);
        values_compared_ = true;
      }
    }
  }

  void expect_states(const std::string& where) {
    for (const std::string& name : file_.children(where)) {
      for (const std::string& slot : file_.children(where + "/" + name)) {
        const std::string path = where + "/" + name + "/" + slot;
        const Parameter& parameter = *model_.parameter(name);
        ASSERT_TRUE(parameter.slots().contains(slot)) << path;
        const Tensor& stored = parameter.slots().at(slot).values;
        const Pattern& pattern = *parameter.pattern();
        golden::expect_near_largest(pattern.layout().to_dense(pattern, stored.storage()),
                                    file_.read_floats(path), path);
      }
    }
  }

  const Hdf5File& file_;
  std::string group_;
  Tensor x_;
  std::unique_ptr<Sequential> owned_;
  Sequential& model_;
  std::unique_ptr<Optimizer> optimizer_;
  std::unique_ptr<SparsityAlgorithm> sparsity_;
  IndexTensor labels_;
  std::vector<float> losses_;

 public:
  bool values_compared_ = false;
};

void check_all(const std::string& name, Network network, const std::string& layout) {
  const Hdf5File file = golden::open(name);
  int cases = 0;
  std::set<std::string> kinds;
  for (const std::string& algorithm : file.children("/")) {
    kinds.insert(algorithm.substr(0, algorithm.find('_')));
    for (const std::string& optimizer : golden::cases(file, algorithm)) {
      Trajectory trajectory(file, algorithm + "/" + optimizer, network, layout);
      trajectory.check();
      EXPECT_TRUE(trajectory.values_compared_) << algorithm << "/" << optimizer;
      if (testing::Test::HasFatalFailure()) return;
      ++cases;
    }
  }
  golden::report(name, cases);
  EXPECT_EQ(kinds, (std::set<std::string>{"gmp", "group", "rigl", "static"}));
}

void check_convolutions(const std::string& layout) {
  for (const std::string& name : golden::models(golden::ModelKind::Trajectories)) {
    check_all("models/" + name + ".h5", convolutions, layout);
  }
}

TEST(GoldenTrajectories, EveryAlgorithmAndOptimizer) {
  check_all("trajectories.h5", mlp, "masked");
}
TEST(GoldenTrajectories, EveryAlgorithmAndOptimizerInCsr) {
  check_all("trajectories.h5", mlp, "csr");
}
TEST(GoldenTrajectories, EveryAlgorithmAndOptimizerInAuto) {
  check_all("trajectories.h5", mlp, "auto");
}
TEST(GoldenTrajectories, OfConvolutions) { check_convolutions("masked"); }
TEST(GoldenTrajectories, OfConvolutionsInCsr) { check_convolutions("csr"); }

}  // namespace
}  // namespace lacuna
