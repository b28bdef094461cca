// A step that throws leaves parameters with dense masters as they were.
#include "lacuna/sparsity/straight_through.h"

#include <gtest/gtest.h>

#include <memory>

#include "lacuna/framework/io/yaml.h"
#include "lacuna/optimizers/sgd.h"
#include "lacuna/sparsity/group.h"
#include "lacuna/sparsity/semi_sparse.h"
#include "test_model.h"
#include "throws.h"

namespace lacuna::straight_through_test {
namespace {

/// SGD that fails in the update of one parameter, once it has changed others.
class Failing final : public Optimizer {
 public:
  explicit Failing(std::vector<ParameterPtr> parameters)
      : Optimizer(std::move(parameters), {.lr = 0.1}) {}
  std::string_view type() const override { return "failing"; }
  bool fails = false;

 protected:
  std::vector<StateSlot> state_slots() const override { return {{.name = "sum"}}; }
  void update(const Update& update) override {
    if (fails && update.parameter.name() == "fc2.weight") throw StateError("the update failed");
    for (size_t i = 0; i < update.values.size(); ++i) {
      update.states[0][i] += update.gradient[i];
      update.values[i] -= 0.1f * update.states[0][i];
    }
  }
};

struct Kept {
  PatternPtr pattern;
  std::vector<float> values;
};

std::vector<Kept> kept_of(const TestModel& t) {
  std::vector<Kept> all;
  for (const char* name : {"fc1.weight", "fc2.weight"}) {
    const ParameterPtr p = t.model.parameter(name);
    all.push_back({p->pattern(), p->to_dense().to_vector()});
  }
  return all;
}

void expect_kept(const TestModel& t, const std::vector<Kept>& before) {
  const std::vector<Kept> now = kept_of(t);
  for (size_t i = 0; i < before.size(); ++i) {
    EXPECT_EQ(now[i].pattern, before[i].pattern);  // not the dense one of the master
    EXPECT_EQ(now[i].values, before[i].values);
  }
}

std::unique_ptr<Group> masters() {
  auto group = std::make_unique<Group>();
  group->add("fc1.weight",
             std::make_unique<StraightThrough>(DynamicOptions{.sparsity = 0.75,
                                                              .init_method = "topk",
                                                              .layout = "csr",
                                                              .update = UpdateSchedule::every(2)}));
  group->add("fc2.weight",
             std::make_unique<SemiSparse>(SemiSparseOptions{.pattern = PatternShape::nm(2, 4)}));
  return group;
}

TEST(Masters, StayHiddenWhenALearningRateIsRefused) {
  TestModel t;
  const auto group = masters();
  const Config falling = parse_yaml("{type: linear, init: 0.01, slope: -0.01}", "lr.yaml");
  Sgd optimizer(t.model.parameters(), {.lr = Schedule::from_config(falling)});
  t.model.apply(*group);
  optimizer.apply(*group);
  t.forward_backward();
  optimizer.step();
  optimizer.zero_grad();
  t.forward_backward();
  optimizer.step();  // at a rate of zero
  optimizer.zero_grad();
  t.forward_backward();
  const std::vector<Kept> before = kept_of(t);
  expect_throws<ConfigError>([&] { optimizer.step(); }, "the learning-rate schedule gives");
  expect_kept(t, before);
  EXPECT_EQ(group->step(), 2);
}

TEST(Masters, GoBackWhenAnUpdateThrows) {
  TestModel t;
  const auto group = masters();
  Failing optimizer(t.model.parameters());
  t.model.apply(*group);
  optimizer.apply(*group);
  t.forward_backward();
  const std::vector<Kept> first = kept_of(t);
  optimizer.fails = true;
  expect_throws<StateError>([&] { optimizer.step(); }, "the update failed");  // no states yet
  expect_kept(t, first);
  optimizer.fails = false;
  for (int i = 0; i < 3; ++i) {
    optimizer.zero_grad();
    t.forward_backward();
    optimizer.step();
  }
  optimizer.zero_grad();
  t.forward_backward();
  const std::vector<Kept> before = kept_of(t);
  optimizer.fails = true;
  expect_throws<StateError>([&] { optimizer.step(); }, "the update failed");
  expect_kept(t, before);
  // Training goes on, forward and step.
  optimizer.fails = false;
  optimizer.zero_grad();
  t.forward_backward();
  optimizer.step();
  EXPECT_EQ(group->step(), 4);
}

}  // namespace
}  // namespace lacuna::straight_through_test
