// SET, and RigL, which grows otherwise.
#include <gtest/gtest.h>

#include <vector>

#include "lacuna/sparsity/rigl.h"
#include "lacuna/sparsity/set.h"
#include "test_model.h"
#include "throws.h"

namespace lacuna::set_test {
namespace {

TEST(SetTest, NnzIsConstantAndSurvivorsKeepTheirState) {
  TestModel t;
  Set algorithm(
      {.sparsity = 0.7, .update = UpdateSchedule::every(2), .drop_fraction = Schedule(0.4)});
  t.apply(algorithm);
  const int64_t nnz = t.weight().pattern()->nnz();
  int updates = 0;
  for (int i = 0; i < 10; ++i) {
    // The same step without the update shows what survivors must keep.
    t.forward_backward();
    algorithm.autoupdate = false;
    t.optimizer->step();
    const BitMask before = t.weight().pattern()->mask();
    const std::vector<float> values = whole(t.weight());
    const std::vector<float> moments = whole(t.weight(), t.weight().slots().at("exp_avg").values);
    algorithm.update(*t.optimizer);
    const BitMask after = t.weight().pattern()->mask();
    EXPECT_EQ(after.count(), nnz);
    updates += before == after ? 0 : 1;
    const std::vector<float> moved = whole(t.weight());
    const std::vector<float> moved_moments =
        whole(t.weight(), t.weight().slots().at("exp_avg").values);
    for (int64_t p = 0; p < after.size(); ++p) {
      const auto q = static_cast<size_t>(p);
      const bool survivor = before.test(p) && after.test(p);
      ASSERT_EQ(moved[q], survivor ? values[q] : 0.0f);
      ASSERT_EQ(moved_moments[q], survivor ? moments[q] : 0.0f);
    }
    t.optimizer->zero_grad();
  }
  EXPECT_EQ(updates, 5);
}

// The dead rows and columns of fc1, summed over ten updates that drop nearly everything.
template <class Algorithm>
int64_t dead_neurons(bool keep_alive) {
  TestModel t;
  Algorithm algorithm({.sparsity = SparsityTarget::fan_in(1),
                       .init_method = "balanced",
                       .param_filter = "fc1.weight",
                       .update = UpdateSchedule::every(1),
                       .drop_fraction = Schedule(0.9),
                       .keep_alive = keep_alive});
  t.apply(algorithm);
  int64_t dead = 0;
  for (int i = 0; i < 10; ++i) {
    t.step();
    EXPECT_EQ(t.weight().pattern()->nnz(), 16);
    dead += algorithm.last_update().at(0).dead_rows + algorithm.last_update().at(0).dead_columns;
  }
  return dead;
}

TEST(SetTest, KeepAliveLeavesNoRowOrColumnEmpty) {
  EXPECT_GT(dead_neurons<Set>(false), 0);
  EXPECT_EQ(dead_neurons<Set>(true), 0);
  EXPECT_GT(dead_neurons<RigL>(false), 0);
  EXPECT_EQ(dead_neurons<RigL>(true), 0);
}

TEST(SetTest, UpdateRecordsAddUp) {
  TestModel t;
  Set algorithm(
      {.sparsity = 0.7, .update = UpdateSchedule::every(3), .drop_fraction = Schedule(0.5)});
  t.apply(algorithm);
  t.step();
  EXPECT_TRUE(algorithm.last_update().empty());
  const BitMask before = t.weight().pattern()->mask();
  t.step();
  t.step();
  const std::vector<MaskUpdate> records = algorithm.last_update();
  ASSERT_EQ(records.size(), 2u);
  const MaskUpdate& r = records[0];
  EXPECT_EQ(r.parameter, "fc1.weight");
  EXPECT_EQ(r.nnz, before.count());
  EXPECT_EQ(r.dropped, r.grown);
  EXPECT_GT(r.grown, 0);
  EXPECT_DOUBLE_EQ(r.churn, static_cast<double>(r.grown) / static_cast<double>(r.nnz));
  EXPECT_DOUBLE_EQ(r.ever_active.value(), static_cast<double>(r.nnz + r.grown) / 192.0);
  EXPECT_NEAR(r.actual_sparsity, r.target_sparsity, 1.0 / 192);
}

TEST(RigLTest, KeepsItsMaskWhereNothingIsDropped) {
  TestModel t;
  RigL algorithm(
      {.sparsity = 0.7, .update = UpdateSchedule::every(1), .drop_fraction = Schedule(0.0)});
  t.apply(algorithm);
  const BitMask before = t.weight().pattern()->mask();
  t.step();  // nothing is dropped, so nothing grows
  EXPECT_TRUE(t.weight().pattern()->mask() == before);
}

TEST(RigLTest, NeedsADenseGradientThatWasAskedFor) {
  TestModel t;
  RigL algorithm({.sparsity = 0.7, .update = UpdateSchedule::every(1)});
  t.apply(algorithm);
  algorithm.autoupdate = false;
  expect_throws<StateError>([&] { algorithm.update(*t.optimizer); },
                            "needs the dense gradient of 'fc1.weight' at step 1");
}

TEST(RigLTest, MicroBatchesAddUpToTheWholeBatch) {
  const auto masks = [](bool split) {
    TestModel t;
    RigL algorithm(
        {.sparsity = 0.8, .update = UpdateSchedule::every(1), .drop_fraction = Schedule(0.5)});
    t.apply(algorithm);
    for (int i = 0; i < 4; ++i) {
      const auto part = [&](int64_t begin, int64_t count) {
        const Tensor x =
            Tensor::from(Shape{count, 12}, t.x.storage().subspan(static_cast<size_t>(begin * 12),
                                                                 static_cast<size_t>(count * 12)));
        const auto all = t.labels.values();
        const IndexTensor labels(Shape{count}, {all.begin() + begin, all.begin() + begin + count});
        const Variable loss = cross_entropy(t.model(Variable(x)), labels);
        backward(loss, Tensor::scalar(static_cast<float>(count) / 20.0f));
      };
      if (split) {
        part(0, 12);
        part(12, 8);
      } else {
        part(0, 20);
      }
      t.optimizer->step();
      t.optimizer->zero_grad();
    }
    return t.weight().pattern()->mask();
  };
  EXPECT_TRUE(masks(true) == masks(false));
}

}  // namespace
}  // namespace lacuna::set_test
