// Optimizers against PyTorch's, step by step.
#include "lacuna/optimizers/optimizer.h"

#include <gmock/gmock.h>

#include "golden/golden.h"
#include "lacuna/framework/io/yaml.h"
#include "lacuna/optimizers/optimizer_registry.h"

namespace lacuna::optimizer_test {
namespace {

// Element `step` of an array whose first dimension is the step.
Tensor at_step(const Tensor& all, int64_t step) {
  const Shape shape = all.shape().without_batch();
  return Tensor::from(shape, all.storage().subspan(static_cast<size_t>(step * shape.numel()),
                                                   static_cast<size_t>(shape.numel())));
}

void expect_same_steps(const Hdf5File& file, const std::string& group) {
  ASSERT_THAT(file.children(group), testing::ElementsAre("grads", "initial", "params")) << group;
  const Tensor initial = file.read_floats(group + "/initial");
  const Tensor gradients = file.read_floats(group + "/grads");
  const Tensor expected = file.read_floats(group + "/params");
  ASSERT_EQ(gradients.shape(), expected.shape()) << group;
  ASSERT_EQ(gradients.shape().without_batch(), initial.shape()) << group;
  ASSERT_GT(gradients.numel(), 0) << group;

  const auto parameter = std::make_shared<Parameter>(initial.shape(), Initializer::constant(0.0));
  parameter->set_name("weight");
  parameter->assign(initial);
  const Config config = parse_yaml(file.attribute_text(group, "config"), file.path());
  const auto optimizer = make_optimizer(config, {parameter});
  config.require_all_read();
  for (int64_t step = 0; step < gradients.shape()[0]; ++step) {
    optimizer->zero_grad();
    parameter->accumulate(at_step(gradients, step));
    optimizer->step();
    golden::expect_near(parameter->values().storage(), at_step(expected, step).storage(),
                        group + " " + config.to_json() + ", step " + std::to_string(step));
  }
}

TEST(OptimizerGolden, FollowsPyTorchStepByStep) {
  const Hdf5File file = golden::open("ops.h5");
  for (const std::string& name : golden::cases(file, "optimizer")) {
    expect_same_steps(file, "optimizer/" + name);
  }
}

}  // namespace
}  // namespace lacuna::optimizer_test
