// release() and release_optimizer(): when they are allowed, and what stays.
#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "lacuna/framework/io/yaml.h"
#include "lacuna/framework/train/builtins.h"
#include "lacuna/sparsity/configure.h"
#include "lacuna/sparsity/dynamic.h"
#include "lacuna/sparsity/group.h"
#include "lacuna/sparsity/rigl.h"
#include "test_model.h"
#include "throws.h"

namespace lacuna::release_test {
namespace {

// Calls a function in each of its updates.
class Calling final : public DynamicSparsityAlgorithm {
 public:
  Calling() : DynamicSparsityAlgorithm({.sparsity = 0.5, .update = UpdateSchedule::every(1)}) {}
  std::string_view type() const override { return "calling"; }
  std::function<void()> call = [] {};

 protected:
  MaskSet update_mask(const SparseWeight&, const MaskSet& mask, float) override {
    call();
    return mask;
  }
};

TEST(ReleaseTest, IsRefusedWithinAnUpdate) {
  TestModel t;
  Calling algorithm;
  t.apply(algorithm);
  const std::vector<std::function<void()>> calls = {
      [&] { algorithm.release(); },
      [&] { algorithm.release_optimizer(); },
      [&] { algorithm.load_state_dict(algorithm.state_dict()); },
  };
  for (const auto& call : calls) {
    algorithm.call = call;
    expect_throws<StateError>([&] { t.step(); }, "was called while it updates masks");
    expect_throws<StateError>([&] { algorithm.update(*t.optimizer); },
                              "was called while it updates masks");
  }
  algorithm.call = [] {};
  t.step();  // the errors have left it as it was
  EXPECT_EQ(algorithm.parameters().size(), 2u);
  algorithm.release();
  EXPECT_TRUE(algorithm.parameters().empty());
}

TEST(ReleaseTest, IsRefusedWithinItsHooks) {
  TestModel t;
  Calling algorithm;
  int calls = 0;
  const auto refused = [&](SparsityAlgorithm& one) {
    ++calls;
    expect_throws<StateError>([&] { one.release(); }, "release was called while");
  };
  const HookHandle targets = algorithm.register_target_sparsity_hook(
      [&](SparsityAlgorithm& one, const std::string&, double) { refused(one); });
  const HookHandle computed = algorithm.register_computed_sparsity_hook(
      [&](SparsityAlgorithm& one, const Parameter&, double) { refused(one); });
  t.apply(algorithm);
  EXPECT_EQ(calls, 3);  // the target, and two first masks
  t.step();
  EXPECT_EQ(calls, 6);
}

// Whole and parts share the guard, in both directions.
TEST(ReleaseTest, IsRefusedWithinAnUpdateOfAPart) {
  TestModel t;
  auto first = std::make_unique<Calling>(), second = std::make_unique<Calling>();
  Calling& one = *first;
  Calling& other = *second;
  Group group;
  group.add(ParameterFilter("fc1.*"), std::move(first));
  group.add(ParameterFilter("fc2.*"), std::move(second));
  t.apply(group);
  for (SparsityAlgorithm* released :
       {static_cast<SparsityAlgorithm*>(&group), static_cast<SparsityAlgorithm*>(&other)}) {
    one.call = [released] { released->release(); };
    expect_throws<StateError>([&] { t.step(); }, "release was called while");
    expect_throws<StateError>([&] { one.update(*t.optimizer); }, "release was called while");
  }
  group.release();
  EXPECT_TRUE(other.parameters().empty());
}

TEST(ReleaseTest, LeavesMasksAndZerosInEachLayout) {
  for (const char* layout : {"masked", "csr"}) {
    TestModel t;
    RigL algorithm({.sparsity = 0.75, .layout = layout, .update = UpdateSchedule::every(1)});
    t.apply(algorithm);
    t.step();
    const BitMask mask = t.weight().pattern()->mask();
    algorithm.release();
    for (int i = 0; i < 3; ++i) t.step();
    EXPECT_TRUE(t.weight().pattern()->mask() == mask) << layout;
    expect_zero_outside(t.weight());
    EXPECT_EQ(algorithm.step(), 1);
  }
}

TEST(ReleaseTest, AnAlgorithmGoesToALaterOptimizer) {
  TestModel t;
  RigL algorithm({.sparsity = 0.75, .update = UpdateSchedule::every(1)});
  t.apply(algorithm);
  t.step();
  Adam later(t.model.parameters(), AdamOptions{.lr = 0.01});
  expect_throws<StateError>([&] { later.apply(algorithm); }, "release_optimizer() ends that");
  const BitMask mask = t.weight().pattern()->mask();
  algorithm.release_optimizer();
  EXPECT_TRUE(t.weight().pattern()->mask() == mask);
  later.apply(algorithm);
  t.step();  // of the earlier one: without an update
  EXPECT_EQ(algorithm.step(), 1);
  EXPECT_TRUE(t.weight().pattern()->mask() == mask);
  t.forward_backward();
  later.step();
  EXPECT_EQ(algorithm.step(), 2);
  EXPECT_FALSE(t.weight().pattern()->mask() == mask);
  expect_zero_outside(t.weight());
}

TEST(ReleaseTest, PhasesAreNotUpdatedAfterwards) {
  register_builtins();
  TestModel t;
  const auto made = configure(parse_yaml("phases: [{until: 2, algorithm: set, sparsity: 0.5}, "
                                         "{algorithm: static, sparsity: 0.9}]",
                                         "c.yaml"),
                              0);
  t.apply(*made);
  const StateDict state = made->state_dict();
  made->release();
  const char* words = "phases must be applied to a model before use";
  expect_throws<StateError>([&] { made->update(*t.optimizer); }, words);
  expect_throws<StateError>([&] { made->load_state_dict(state); }, words);
  t.apply(*made);
  for (int i = 0; i < 3; ++i) t.step();
  EXPECT_EQ(made->step(), 3);
}

}  // namespace
}  // namespace lacuna::release_test
