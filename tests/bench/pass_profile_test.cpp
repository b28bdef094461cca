#include "model/pass_profile.h"

#include <gmock/gmock.h>

#include <set>

#include "lacuna/framework/autograd/ops/loss.h"
#include "lacuna/framework/core/error.h"
#include "lacuna/framework/nn/sequential.h"
#include "lacuna/layers/activations.h"
#include "lacuna/layers/linear.h"
#include "model/kind_table.h"
#include "model/layout_choice.h"
#include "throws.h"

namespace lacuna::bench {
namespace {

// 100 GFLOP/s; 1 KiB at 50 GB/s, all else at 10.
MachineLimits limits() { return {100.0, {{1024, 50.0}, {4096, 10.0}}}; }

TEST(MachineLimits, TheLargerOfArithmeticAndTrafficIsTheBound) {
  EXPECT_EQ(limits().gb_per_s(1024.0), 50.0);
  EXPECT_EQ(limits().gb_per_s(1025.0), 10.0);
  EXPECT_EQ(limits().gb_per_s(1e9), 10.0);
  EXPECT_DOUBLE_EQ(limits().bound_ms(1e8, 1024.0), 1.0);
  EXPECT_DOUBLE_EQ(limits().bound_ms(1e5, 1e7), 1.0);
}

TEST(MachineLimits, TinyLoopsRun) {
  const MachineLimits measured = MachineLimits::measured(Size::Tiny);
  EXPECT_GT(measured.fma_gflops(), 0.0);
  EXPECT_GT(measured.gb_per_s(1.0), 0.0);
  EXPECT_GT(measured.gb_per_s(1e12), 0.0);
}

struct Trained {
  Trained() {
    model.add<Linear>("fc1", {.in_features = 6, .out_features = 8});
    model.add<ReLU>("relu");
    model.add<Linear>("fc2", {.in_features = 8, .out_features = 3});
    model.initialize(0);
  }
  void pass(PassProfile& profile, bool is_backward) {
    const PassProfile::Pass under_way(profile);
    const Variable loss = cross_entropy(model(Variable(Tensor::full({4, 6}, 1.0f))),
                                        IndexTensor(Shape{4}, {0, 1, 2, 0}));
    profile.add("forward", 1.0);
    if (is_backward) backward(loss);
  }
  Sequential model;
};

TEST(PassProfile, KnowsModulesAndNodes) {
  Trained trained;
  PassProfile profile(trained.model, Shape{6}, 4);
  trained.pass(profile, true);
  trained.pass(profile, true);
  std::set<std::string> kinds;
  for (const auto& [kind, ms] : profile.ms_by_kind()) {
    kinds.insert(kind);
    EXPECT_GE(ms, 0.0);
  }
  EXPECT_THAT(kinds, testing::IsSupersetOf({"forward", "forward linear", "forward relu",
                                            "backward linear", "backward relu"}));
  EXPECT_EQ(profile.ms_by_kind().at("forward"), 1000.0);
  EXPECT_GE(profile.page_faults(), 0.0);
  EXPECT_EQ(profile_sink(), nullptr);
}

TEST(PassProfile, BoundsCountOperationsAndBytes) {
  Trained trained;
  PassProfile profile(trained.model, Shape{6}, 4);
  trained.pass(profile, true);
  // Fed by bytes alone: a linear layer moves input, output and weight.
  const auto by_bytes = profile.bound_ms_by_kind({1e9, {{1 << 20, 1.0}}});
  const double linear = 4.0 * (4 * (6 + 8) + 48 + 4 * (8 + 3) + 24);
  EXPECT_DOUBLE_EQ(by_bytes.at("forward linear"), linear / 1e6);
  EXPECT_DOUBLE_EQ(by_bytes.at("forward relu"), 4.0 * 4 * (8 + 8) / 1e6);
  // By operations alone: two for each weight and example, and three times that with the gradients
  // but for the first layer's input.
  const auto by_operations = profile.bound_ms_by_kind({1.0, {{1 << 20, 1e9}}});
  EXPECT_DOUBLE_EQ(by_operations.at("forward linear"), 2.0 * 4 * (48 + 24) / 1e6);
  EXPECT_DOUBLE_EQ(by_operations.at("backward linear"), 2.0 * 4 * (48 + 2 * 24) / 1e6);
}

TEST(PassProfile, DroppedPassesCountForNothing) {
  Trained trained;
  PassProfile profile(trained.model, Shape{6}, 4);
  trained.pass(profile, false);
  trained.pass(profile, true);
  profile.drop_last();
  EXPECT_EQ(profile.ms_by_kind().count("backward linear"), 0u);
}

TEST(KindTable, HasAShareWhereABoundIsKnown) {
  KindTable table("where it goes");
  table.add("dense", {{"forward", 4.0}, {"forward linear", 2.0}}, {{"forward linear", 1.0}});
  table.add("csr", {{"forward", 3.0}, {"backward linear", 5.0}}, {});
  EXPECT_THAT(table.table().columns, testing::ElementsAre("kind", "dense", "bound", "of bound",
                                                          "csr", "bound", "of bound"));
  EXPECT_THAT(table.table().rows,
              testing::UnorderedElementsAre(
                  testing::ElementsAre("forward", "4.00", "", "", "3.00", "", ""),
                  testing::ElementsAre("forward linear", "2.00", "1.00", "50 %", "", "", ""),
                  testing::ElementsAre("backward linear", "", "", "", "5.00", "", "")));
}

TEST(LayoutChoice, NamesWhatThereIs) {
  EXPECT_TRUE(LayoutChoice({}).has("csr"));
  EXPECT_TRUE(LayoutChoice({"nm 2:4"}).has("nm 2:4"));
  EXPECT_FALSE(LayoutChoice({"nm 2:4"}).has("csr"));
  expect_throws<ConfigError>([] { LayoutChoice({"crs"}); }, "there is no layout 'crs'");
}

}  // namespace
}  // namespace lacuna::bench
