#include "lacuna/framework/config/state_dict.h"

#include <gmock/gmock.h>

#include <limits>
#include <type_traits>

#include "lacuna/framework/core/error.h"
#include "throws.h"

namespace lacuna::state_dict_test {
namespace {

TEST(StateDict, OfATemporaryStateThereAreCopies) {
  const auto made = [] {
    StateDict state;
    state.set("mask", ByteArray{{2}, {0, 1}});
    return state;
  };
  const auto& mask = made().get<ByteArray>("mask");
  EXPECT_EQ(mask, (ByteArray{{2}, {0, 1}}));
  int count = 0;
  for (const auto& [name, value] : made().values()) count += name == "mask" ? 1 : 0;
  EXPECT_EQ(count, 1);
  static_assert(!std::is_reference_v<decltype(made().get<ByteArray>("mask"))>);
}

TEST(StateDict, KeepsEveryTypeOfValue) {
  StateDict state;
  EXPECT_TRUE(state.empty());
  state.set("tensor", Tensor::scalar(2.0f));
  state.set("mask", ByteArray{{2}, {0, 1}});
  state.set("order", std::vector<int64_t>{3, 1});
  state.set("step", int64_t{5});
  state.set("best", 0.5);
  state.set("type", std::string("adam"));
  EXPECT_EQ(state.get<Tensor>("tensor").item(), 2.0f);
  EXPECT_EQ(state.get<ByteArray>("mask"), (ByteArray{{2}, {0, 1}}));
  EXPECT_THAT(state.get<std::vector<int64_t>>("order"), testing::ElementsAre(3, 1));
  EXPECT_EQ(state.get<int64_t>("step"), 5);
  EXPECT_EQ(state.get<double>("best"), 0.5);
  EXPECT_EQ(state.get<std::string>("type"), "adam");
  state.set("step", int64_t{6});
  EXPECT_EQ(state.get<int64_t>("step"), 6);
}

TEST(StateDict, MergesBelowAPrefixAndTakesItOut) {
  StateDict inner, outer;
  inner.set("step", int64_t{1});
  inner.set("fc1.weight/exp_avg", 0.5);
  outer.merge("optimizer", inner);
  outer.set("optimizer2/step", int64_t{9});
  outer.set("optimizer", int64_t{7});
  const StateDict part = outer.below("optimizer");
  EXPECT_EQ(part.values().size(), 2u);
  EXPECT_EQ(part.get<int64_t>("step"), 1);
  EXPECT_EQ(part.below("fc1.weight").get<double>("exp_avg"), 0.5);
  EXPECT_TRUE(outer.below("optim").empty());
}

TEST(StateDict, MessagesNameWhatIsMissingOrOfAnotherType) {
  StateDict state;
  state.set("step", int64_t{1});
  expect_throws<CheckpointError>([&] { state.get<int64_t>("steps"); },
                                 "the saved state has no 'steps'; did you mean 'step'?");
  expect_throws<CheckpointError>([&] { state.get<double>("step"); },
                                 "'step' in the saved state has the wrong type");
  try {
    StateDict().get<int64_t>("steps");
    FAIL();
  } catch (const CheckpointError& error) {
    EXPECT_STREQ(error.what(), "the saved state has no 'steps'");  // where nothing is like it
  }
}

TEST(StateDict, NumbersOutOfRangeAreRefusedWithTheirLimits) {
  StateDict state;
  state.set("loss", -1.0);
  state.set("count", int64_t{-1});
  EXPECT_EQ(state.number("loss"), -1.0);
  expect_throws<CheckpointError>([&] { state.number("loss", 0.0, 2.0); },
                                 "is -1.0, expected a number from 0.0 to 2.0");
  expect_throws<CheckpointError>([&] { state.number("loss", 0.0); },
                                 "is -1.0, expected a finite number of at least 0.0");
  expect_throws<CheckpointError>([&] { state.count("count"); }, "is -1, expected a count");
  state.set("loss", std::numeric_limits<double>::quiet_NaN());
  expect_throws<CheckpointError>([&] { state.number("loss"); }, "expected a finite number");
}

}  // namespace
}  // namespace lacuna::state_dict_test
