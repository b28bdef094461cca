#include "lacuna/framework/core/hooks.h"

#include <gmock/gmock.h>

#include <string>

namespace lacuna::hooks_test {
namespace {

using testing::ElementsAre;

TEST(Hooks, RunInTheOrderTheyWereAdded) {
  HookList<int> hooks;
  std::vector<int> calls;
  hooks.add([&](int x) { calls.push_back(x); });
  hooks.add([&](int x) { calls.push_back(10 * x); });
  hooks.call(1);
  hooks.call(2);
  EXPECT_THAT(calls, ElementsAre(1, 10, 2, 20));
}

TEST(Hooks, AreRemovedByTheirHandleAndKeptWhenItIsDropped) {
  HookList<> hooks;
  int first = 0, second = 0;
  HookHandle handle = hooks.add([&] { ++first; });
  hooks.add([&] { ++second; });
  hooks.call();
  handle.remove();
  handle.remove();
  hooks.call();
  EXPECT_EQ(first, 1);
  EXPECT_EQ(second, 2);
  HookHandle().remove();
}

TEST(Hooks, HandlesOutliveTheList) {
  HookHandle handle;
  {
    HookList<> hooks;
    handle = hooks.add([] {});
  }
  handle.remove();
}

TEST(Hooks, MayRemoveAndAddWhileTheListRuns) {
  HookList<> hooks;
  std::vector<std::string> calls;
  HookHandle self, later;
  self = hooks.add([&] {
    calls.push_back("self");
    self.remove();
    later.remove();
    hooks.add([&] { calls.push_back("added"); });
  });
  later = hooks.add([&] { calls.push_back("later"); });
  hooks.call();
  EXPECT_THAT(calls, ElementsAre("self"));
  hooks.call();
  EXPECT_THAT(calls, ElementsAre("self", "added"));
}

}  // namespace
}  // namespace lacuna::hooks_test
