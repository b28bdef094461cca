// What checkpoints keep of data and teacher, and what is said where these are others.
#include "lacuna/framework/train/checks/run_origins.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "lacuna/framework/core/error.h"
#include "throws.h"

namespace lacuna::run_origins_test {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

RunOrigins known() {
  return {.data = {.train = DataHash{.size = 40, .inputs = 1, .answers = ~uint64_t{0}},
                   .test = DataHash{.size = 10, .inputs = 3, .answers = 4}},
          .train_size = 32,
          .columns = {.inputs = {"a", "b"}, .label = "kind"},
          .teacher = TeacherOrigin{.step = 100, .hash = uint64_t{1} << 63}};
}

// As a checkpoint holds it.
StateDict saved(const RunOrigins& origins) {
  StateDict whole;
  whole.merge("origins", origins.state_dict());
  whole.set("data/columns", std::string(R"({"inputs": ["a", "b"], "label": "kind"})"));
  whole.set("loader/dataset_size", int64_t{32});
  return whole;
}

TEST(RunOrigins, ComeBackAsTheyWereSaved) {
  const RunOrigins read = RunOrigins::from_state(saved(known()));
  EXPECT_EQ(read.data, known().data);
  EXPECT_EQ(read.train_size, 32);
  EXPECT_EQ(read.columns.inputs, known().columns.inputs);
  ASSERT_TRUE(read.teacher);
  EXPECT_EQ(read.teacher->step, 100);
  EXPECT_EQ(read.teacher->hash, uint64_t{1} << 63);
  EXPECT_THAT(known().changes_since(read), IsEmpty());
  EXPECT_THAT(known().unknown_in(read), IsEmpty());
}

TEST(RunOrigins, SayWhatIsAnother) {
  const auto changes = [](const std::function<void(RunOrigins&)>& change) {
    RunOrigins now = known();
    change(now);
    return now.changes_since(known());
  };
  EXPECT_THAT(changes([](RunOrigins& now) { now.data.train->inputs = 9; }),
              ElementsAre("other training inputs"));
  EXPECT_THAT(changes([](RunOrigins& now) { now.data.test->answers = 9; }),
              ElementsAre("other test labels or targets"));
  EXPECT_THAT(
      changes([](RunOrigins& now) {
        now.data.train = DataHash{.size = 39, .inputs = 9};
        now.train_size = 31;
        now.data.test->inputs = 9;
      }),
      ElementsAre("training data of a different size (39, which was 40)", "other test inputs"));
  EXPECT_THAT(changes([](RunOrigins& now) { now.columns.inputs[1] = "c"; }),
              ElementsAre(HasSubstr("other names (the table has the columns 'c'")));
  EXPECT_THAT(changes([](RunOrigins& now) { now.teacher = TeacherOrigin{.step = 7, .hash = 7}; }),
              ElementsAre("another teacher (of step 7, which was 100)"));
  // Of what one of both does not know nothing is said.
  EXPECT_THAT(changes([](RunOrigins& now) {
                now.data.test.reset();
                now.data.validation = DataHash{.size = 1};
                now.teacher.reset();
              }),
              IsEmpty());
}

TEST(RunOrigins, OfEarlierVersionsHaveASizeAlone) {
  StateDict whole;
  whole.set("loader/dataset_size", int64_t{30});
  const RunOrigins read = RunOrigins::from_state(whole);
  EXPECT_THAT(known().changes_since(read), ElementsAre("32 training examples, which were 30"));
  EXPECT_THAT(known().unknown_in(read), HasSubstr("has no hash of its data and its teacher"));
}

TEST(RunOrigins, ThatCannotBeReadAreErrorsOfTheCheckpoint) {
  for (const auto& [name, text] :
       {std::pair{"origins/data",
                  "{\"train\": {\"size\": 1, \"inputs\": \"zz\", \"answers\": \"0\"}}"},
        std::pair{"origins/data", "{\"train\": {\"size\": 1}}"}, std::pair{"origins/data", "["},
        std::pair{"origins/teacher", "{\"step\": 1}"}, std::pair{"data/columns", "{}"}}) {
    StateDict whole = saved(known());
    whole.set(name, std::string(text));
    expect_throws<CheckpointError>(
        [&] { RunOrigins::from_state(whole); },
        "'" + std::string(name) + "' in the saved state cannot be read: ");
  }
}

TEST(RunOrigins, HashAStateByNamesAndValues) {
  const auto hash = [](const std::string& name, StateDict::Value value) {
    StateDict state;
    state.set(name, std::move(value));
    return hash_state(state);
  };
  const std::set<uint64_t> hashes{
      hash("a", int64_t{1}),
      hash("b", int64_t{1}),
      hash("a", int64_t{2}),
      hash("a", 2.5),
      hash("a", std::string("x")),
      hash("a", std::vector<int64_t>{1, 2}),
      hash("a", std::vector<uint32_t>{2, 1}),
      hash("a", ByteArray{.shape = Shape{2}, .values = {0, 1}}),
      hash("a", Tensor::from(Shape{2}, std::vector<float>{1.0f, 2.0f})),
      hash("a", Tensor::from(Shape{2}, std::vector<float>{1.0f, 3.0f})),
  };
  EXPECT_EQ(hashes.size(), 10u);
  EXPECT_EQ(hash("a", int64_t{1}), hash("a", int64_t{1}));
}

}  // namespace
}  // namespace lacuna::run_origins_test
