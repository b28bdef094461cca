// What dynamic algorithms share, and GMP.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "lacuna/sparsity/gmp.h"
#include "lacuna/sparsity/options/counting.hpp"
#include "lacuna/sparsity/rigl.h"
#include "lacuna/sparsity/set.h"
#include "test_model.h"
#include "throws.h"

namespace lacuna::dynamic_test {
namespace {

TEST(DynamicTest, StartsFullUnlessStepZeroIsAnUpdate) {
  TestModel t;
  Set late({.sparsity = 0.5, .update = UpdateSchedule::every(4, 2)});
  t.apply(late);
  EXPECT_EQ(t.weight().pattern()->nnz(), 192);
  t.step();
  EXPECT_EQ(t.weight().pattern()->nnz(), 192);
  t.step();
  EXPECT_LT(t.weight().pattern()->nnz(), 192);
}

TEST(DynamicTest, StopIsExclusive) {
  TestModel t;
  Set algorithm(
      {.sparsity = 0.5, .update = UpdateSchedule::every(2, 0, 4), .drop_fraction = Schedule(0.5)});
  t.apply(algorithm);
  int updates = 0;
  for (int i = 0; i < 8; ++i) {
    t.step();
    updates += algorithm.last_update().empty() ? 0 : 1;
  }
  EXPECT_EQ(updates, 1);  // at step 2 alone
}

TEST(DynamicTest, StateResumesWithTheSameTopology) {
  const DynamicOptions options{
      .sparsity = 0.7, .update = UpdateSchedule::every(2), .drop_fraction = Schedule(0.5)};
  TestModel straight_through;
  RigL straight(options);
  straight_through.apply(straight);
  TestModel first, second;
  RigL before(options), after(options);
  first.apply(before);
  for (int i = 0; i < 3; ++i) {
    straight_through.step();
    first.step();
  }
  second.apply(after);
  second.model.load_state_dict(first.model.state_dict());
  second.optimizer->load_state_dict(first.optimizer->state_dict());
  after.load_state_dict(before.state_dict());
  for (int i = 0; i < 5; ++i) {  // to step 8, an update step
    straight_through.step();
    second.step();
  }
  ASSERT_FALSE(straight.last_update().empty());
  EXPECT_TRUE(straight_through.weight().pattern()->mask() == second.weight().pattern()->mask());
  EXPECT_EQ(straight_through.weight().to_dense().to_vector(),
            second.weight().to_dense().to_vector());
  EXPECT_EQ(straight.last_update()[0].ever_active, after.last_update()[0].ever_active);
  Set other({.sparsity = 0.7});
  TestModel third;
  third.apply(other);
  expect_throws<CheckpointError>(
      [&] { other.load_state_dict(before.state_dict()); },
      "holds the state of sparsity algorithm 'rigl', the run uses 'set'");
}

TEST(GmpTest, PrunesToTheTargetAndNeverRegrows) {
  TestModel t;
  const Config schedule = Config::map(
      {{"type", "polynomial"}, {"init", 0.0}, {"final", 0.9}, {"start", 0}, {"end", 8}});
  Gmp algorithm({.sparsity = Schedule::from_config(schedule), .update = UpdateSchedule::every(2)});
  t.apply(algorithm);
  EXPECT_EQ(t.weight().pattern()->nnz(), 192);
  BitMask before = t.weight().pattern()->mask();
  for (int i = 0; i < 10; ++i) {
    t.step();
    const BitMask after = t.weight().pattern()->mask();
    after.for_each([&](int64_t p) { EXPECT_TRUE(before.test(p)); });
    before = after;
    expect_zero_outside(t.weight());
  }
  EXPECT_EQ(before.count(), target_nnz(0.9f, 192));
}

TEST(GmpTest, RefusesAConstantAndADropFraction) {
  expect_throws<ConfigError>([] { Gmp({.sparsity = 0.9}); }, "use algorithm 'static'");
  expect_throws<ConfigError>([] { Gmp({.sparsity = 0.9, .drop_fraction = Schedule(0.3)}); },
                             "takes no drop_fraction");
}

}  // namespace
}  // namespace lacuna::dynamic_test
