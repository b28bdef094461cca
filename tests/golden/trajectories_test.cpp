// Twenty steps of training with each algorithm and optimizer against the reference implementation:
// masks exactly, values and optimizer states to 1e-4 of their largest magnitude.
#include <cmath>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "golden/golden.h"
#include "lacuna/framework/autograd/engine.h"
#include "lacuna/framework/autograd/ops/loss.h"
#include "lacuna/framework/io/yaml.h"
#include "lacuna/framework/nn/sequential.h"
#include "lacuna/framework/train/builtins.h"
#include "lacuna/layers/linear.h"
#include "lacuna/layers/relu.h"
#include "lacuna/optimizers/optimizer_registry.h"
#include "lacuna/sparsity/configure.h"

namespace lacuna {
namespace {

void expect_near_scale(const Tensor& found, const Tensor& expected, const std::string& what) {
  const std::vector<float> a = found.to_vector(), b = expected.to_vector();
  ASSERT_EQ(a.size(), b.size()) << what;
  float largest = 0.0f;
  for (const float value : b) largest = std::max(largest, std::abs(value));
  for (size_t i = 0; i < b.size(); ++i) {
    ASSERT_NEAR(a[i], b[i], 1e-4f * largest) << what << ", element " << i;
  }
}

/// One trajectory: the network of the files, trained as the group's attributes say.
class Trajectory {
 public:
  Trajectory(const Hdf5File& file, const std::string& group, const std::string& layout)
      : file_(file), group_(group) {
    model_.add<Linear>("fc1", {.in_features = 20, .out_features = 24});
    model_.add<ReLU>("relu");
    model_.add<Linear>("fc2", {.in_features = 24, .out_features = 8});
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
    x_ = file.read_floats(group + "/x");
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
        expect_near_scale(model_.parameter(name)->to_dense(), file_.read_floats(where + "/" + name),
                          where + "/" + name);
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
        expect_near_scale(pattern.layout().to_dense(pattern, stored.storage()),
                          file_.read_floats(path), path);
      }
    }
  }

  const Hdf5File& file_;
  std::string group_;
  Sequential model_;
  std::unique_ptr<Optimizer> optimizer_;
  std::unique_ptr<SparsityAlgorithm> sparsity_;
  Tensor x_;
  IndexTensor labels_;
  std::vector<float> losses_;

 public:
  bool values_compared_ = false;
};

void check_all(const std::string& layout) {
  register_builtins();
  const Hdf5File file = golden::open("trajectories.h5");
  int cases = 0;
  std::set<std::string> kinds;
  for (const std::string& algorithm : file.children("/")) {
    kinds.insert(algorithm.substr(0, algorithm.find('_')));
    for (const std::string& optimizer : golden::cases(file, algorithm)) {
      Trajectory trajectory(file, algorithm + "/" + optimizer, layout);
      trajectory.check();
      EXPECT_TRUE(trajectory.values_compared_) << algorithm << "/" << optimizer;
      if (testing::Test::HasFatalFailure()) return;
      ++cases;
    }
  }
  golden::report("trajectories.h5", cases);
  EXPECT_EQ(kinds, (std::set<std::string>{"gmp", "group", "rigl", "static"}));
}

TEST(GoldenTrajectories, EveryAlgorithmAndOptimizer) { check_all("masked"); }
TEST(GoldenTrajectories, EveryAlgorithmAndOptimizerInCsr) { check_all("csr"); }
TEST(GoldenTrajectories, EveryAlgorithmAndOptimizerInAuto) { check_all("auto"); }

}  // namespace
}  // namespace lacuna
