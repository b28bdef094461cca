// An algorithm that another one owns, by its only part: what outlives its group, and ends with its
// phase.
#include <gtest/gtest.h>

#include <memory>
#include <string_view>
#include <utility>
#include <vector>

#include "lacuna/framework/core/error.h"
#include "lacuna/sparsity/dense.h"
#include "lacuna/sparsity/group.h"
#include "lacuna/sparsity/phases.h"
#include "lacuna/sparsity/static.h"
#include "test_model.h"

namespace lacuna::stand_in_test {
namespace {

class StandIn final : public SparsityAlgorithm {
 public:
  explicit StandIn(SparsityAlgorithm& part) : SparsityAlgorithm({}), part_(part) { add_part(part); }
  std::string_view type() const override { return part_.type(); }
  void adopt(Module& module, std::vector<ParameterPtr> parameters, MaskSource source) override {
    set_parameters(parameters);
    part_.adopt(module, std::move(parameters), source);
  }
  void update(Optimizer& optimizer) override { part_.update(optimizer); }

 private:
  SparsityAlgorithm& part_;
};

TEST(StandInTest, APartThatOutlivesItsGroupIsApart) {
  Static part({.sparsity = 0.75});
  {
    TestModel t;
    Group group;
    group.add("fc1.weight", std::make_unique<StandIn>(part));
    t.apply(group);
    t.step();
    EXPECT_EQ(part.step(), 1);
    EXPECT_EQ(t.weight("fc1.weight").pattern()->nnz(), 48);
    EXPECT_NE(part.outer(), nullptr);
  }
  EXPECT_EQ(part.outer(), nullptr);
  EXPECT_TRUE(part.parameters().empty());
  TestModel next;
  next.apply(part);  // as one that was never in a group
  EXPECT_EQ(next.weight("fc2.weight").pattern()->nnz(), 16);
}

// As where the constructor of a whole throws after it has made its parts.
TEST(StandInTest, APartThatIsDestroyedLeavesItsWhole) {
  auto part = std::make_unique<Static>(SparsityOptions{.sparsity = 0.75});
  StandIn whole(*part);
  ASSERT_EQ(whole.parts().size(), 1u);
  part.reset();
  EXPECT_TRUE(whole.parts().empty());
}

TEST(StandInTest, APartThatMovesBelongsToItsNewWholeAlone) {
  auto part = std::make_unique<Static>(SparsityOptions{.sparsity = 0.75});
  SparsityAlgorithm& moved = *part;
  Group whole;
  {
    Group other;
    other.add("fc1.weight", std::move(part));
    whole.extend(std::move(other));
    EXPECT_TRUE(other.parts().empty());
  }
  EXPECT_EQ(moved.outer(), &whole);
  EXPECT_EQ(whole.parts().size(), 1u);
}

TEST(StandInTest, AGroupThatCannotBeTakenOverStaysAsItIs) {
  TestModel t;
  Group applied, other;
  applied.add("fc1.weight", std::make_unique<Static>(SparsityOptions{.sparsity = 0.75}));
  t.apply(applied);
  other.add("fc2.weight", std::make_unique<Static>(SparsityOptions{.sparsity = 0.75}));
  EXPECT_THROW(applied.extend(std::move(other)), StateError);
  EXPECT_EQ(applied.parts().size(), 1u);
  ASSERT_EQ(other.parts().size(), 1u);
  EXPECT_EQ(other.algorithms()[0]->outer(), &other);
}

TEST(StandInTest, APhaseEndsWhatItStandsFor) {
  TestModel t;
  Static part({.sparsity = 0.75});
  std::vector<Phase> plan;
  plan.push_back({std::make_unique<StandIn>(part), 2});
  plan.push_back({std::make_unique<Dense>(), {}});
  Phases phases(std::move(plan));
  t.apply(phases);
  t.step();
  EXPECT_EQ(t.weight("fc1.weight").sparsified_by, "static");
  t.step();
  EXPECT_EQ(t.weight("fc1.weight").sparsified_by, "dense");
  EXPECT_EQ(t.weight("fc1.weight").pattern()->nnz(), 192);
  EXPECT_TRUE(part.parameters().empty());
}

}  // namespace
}  // namespace lacuna::stand_in_test
