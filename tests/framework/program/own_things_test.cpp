// A dataset, a layer, an optimizer and an algorithm of a user's: every command does with them what
// it does with those that are built in.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <string>
#include <vector>

#include "framework/program/runs.h"
#include "paths.h"

namespace lacuna::own_things_test {
namespace {

using testing::HasSubstr;
using testing::Not;

constexpr const char* kConfig = R"(
data: {type: rows, folder: rows, validation: 8}
model: {init_fan_in: nonzeros, layers: [{type: twice, outputs: 16}, relu, {type: twice}]}
optimizer: {type: plain, lr: 0.05}
sparsity: {algorithm: first_free, sparsity: 0.5, update: {freq: 4}}
train: {epochs: 4, batch_size: 8, seed: 3, threads: 1, checkpoint: {every: 1 epoch}}
)";

// Three classes by which of three numbers is the largest.
std::string rows(int64_t count, int64_t first) {
  std::string text;
  for (int64_t i = first; i < first + count; ++i) {
    const int64_t label = i % 3;
    for (int64_t j = 0; j < 3; ++j) {
      text += std::to_string(j == label ? 3.0 : 0.1 * static_cast<double>((7 * i + j) % 10)) + " ";
    }
    text += std::to_string(label) + "\n";
  }
  return text;
}

class OwnThings : public RunFixture {
 protected:
  OwnThings() {
    write_text(config(), kConfig);
    std::filesystem::create_directory(folder_ / "rows");
    write_text(folder_ / "rows/train.rows", rows(72, 0));
    write_text(folder_ / "rows/test.rows", rows(30, 100));
  }

  static Ended run(const std::vector<std::string>& arguments) {
    return run_lacuna(arguments, {.program = kOwnThingsProgram});
  }
  Ended train_own(std::vector<std::string> more = {}) const {
    more.insert(more.begin(), {"train", config(), "--run-dir", run_dir()});
    return run(more);
  }
  void train_well() const {
    const Ended ended = train_own();
    ASSERT_EQ(ended.code, 0) << ended.err;
  }
};

void expect_done(const Ended& ended, const std::string& output) {
  EXPECT_EQ(ended.code, 0) << ended.err;
  EXPECT_THAT(ended.out, HasSubstr(output));
}

void expect_refused(const Ended& ended, const std::string& message) {
  EXPECT_NE(ended.code, 0) << ended.out;
  EXPECT_THAT(ended.err, HasSubstr(message));
}

TEST_F(OwnThings, AreListedAndPlanned) {
  expect_done(run({"list", "datasets"}), "rows ");
  expect_done(run({"list", "layers"}), "twice ");
  expect_done(run({"list", "optimizers"}), "plain ");
  expect_done(run({"list", "algorithms"}), "first_free ");
  expect_done(run({"list", "algorithms"}), "use it where the first places matter\n");
  const Ended planned = run({"plan", config()});
  expect_done(planned, "first_free");
  EXPECT_THAT(planned.out, HasSubstr("twice1.weight"));
}

// Its folder is looked for beside the file; the run states what new runs do, and what the model's
// layers were given by data and model.
TEST_F(OwnThings, AreTrained) {
  const Ended ended = train_own();
  ASSERT_EQ(ended.code, 0) << ended.err;
  EXPECT_THAT(ended.err, HasSubstr("'rows' is not in the current folder; taken from that of "));
  const Config run = load_yaml(run_dir() + "/config.yaml");
  EXPECT_EQ(run.peek("data.folder").text(), folder_ / "rows");
  EXPECT_EQ(run.peek("data.unit").text(), "metre");
  EXPECT_EQ(run.peek("data.skip").text(), "0");
  EXPECT_EQ(run.peek("model.layers.2.outputs").text(), "3");
  EXPECT_EQ(run.peek("model.layers.0.init_fan_in").text(), "nonzeros");
  EXPECT_GT(summary(run_dir()).peek("test_accuracy").as<double>(), 0.9);
}

TEST_F(OwnThings, HaveTheirMistakesReported) {
  std::filesystem::remove_all(folder_ / "rows");
  expect_refused(train_own({"--set", "data.skipp=1"}), "unknown key 'skipp'; did you mean 'skip'?");
  expect_refused(train_own(), "train.rows: no such file");
}

TEST_F(OwnThings, ThrowWhatLacunaDoesNotKnow) {
  write_text(folder_ / "rows/train.rows", "1 2 3 first\n");  // std::stoll throws
  expect_refused(train_own(),
                 "error: std::invalid_argument: stoll (an error in lacuna, or in a class");
}

TEST_F(OwnThings, NeedABatchWhereTheySaySo) {
  expect_refused(
      train_own({"--set", "data.limit=9", "--set", "data.validation=0", "--set", "train.epochs=1"}),
      "layer 'twice1' (twice), which is given shape [3] per example, needs more than one value per "
      "channel");
}

TEST_F(OwnThings, AreResumed) {
  train_well();
  std::filesystem::rename(folder_ / "rows", folder_ / "moved");
  const std::vector<std::string> resume = {"train",   "--resume", "--run-dir",
                                           run_dir(), "--set",    "train.epochs=6"};
  std::vector<std::string> moved = resume, skipping = resume;
  moved.insert(moved.end(), {"--set", "data.folder=" + (folder_ / "moved")});
  skipping.insert(skipping.end(), {"--set", "data.skip=4"});
  expect_refused(run(skipping), "a resumed run keeps data.skip = 0; only these may change: ");
  EXPECT_THAT(run(skipping).err, HasSubstr("data.folder"));
  const Ended resumed = run(moved);
  EXPECT_EQ(resumed.code, 0) << resumed.err;
  EXPECT_EQ(summary(run_dir()).peek("steps").text(), "48");
}

TEST_F(OwnThings, AreEvaluated) {
  train_well();
  expect_done(run({"eval", run_dir()}), "test ");
  expect_refused(run({"eval", run_dir(), "--set", "data.skip=4"}),
                 "--set data.skip=4: the run held out its validation split with data.skip = 0");
  std::filesystem::remove(folder_ / "rows/train.rows");
  const Ended without = run({"eval", run_dir()});
  expect_done(without, "test ");
  EXPECT_THAT(without.err, HasSubstr("the splits in files of their own are evaluated"));
}

TEST_F(OwnThings, PredictAndAreInspectedAndExported) {
  train_well();
  write_text(folder_ / "new.rows", "3 0 0 ?\n0 3 0 ?\n0 0 3 ?\n");
  expect_done(run({"predict", run_dir(), folder_ / "new.rows", "--out", folder_ / "out.csv"}),
              "3 predictions are in ");
  EXPECT_THAT(read_text(folder_ / "out.csv"), testing::ContainsRegex("\n2,"));
  expect_done(run({"inspect", run_dir()}), "sparsity algorithm first_free, optimizer plain");
  expect_done(
      run({"export", run_dir(), "--format", "safetensors", "--out", folder_ / "model.safetensors"}),
      "");
  EXPECT_TRUE(std::filesystem::exists(folder_ / "model.safetensors"));
  expect_done(run({"export", run_dir(), "--format", "onnx", "--out", folder_ / "model.onnx"}), "");
  EXPECT_TRUE(std::filesystem::exists(folder_ / "model.onnx"));
  expect_done(run({"report", run_dir(), "--out", folder_ / "report.html"}), "");
}

// Masks of loaded weights are kept, as a subclass of Set keeps them; a pruned run keeps its keys.
TEST_F(OwnThings, BeginAtARunAndArePruned) {
  train_well();
  const Ended begun = run({"train", config(), "--run-dir", run_dir("second"), "--init-from",
                           run_dir(), "--set", "train.epochs=1"});
  EXPECT_EQ(begun.code, 0) << begun.err;
  EXPECT_THAT(begun.out + begun.err, HasSubstr("the loaded masks are kept"));
  write_text(folder_ / "prune.yaml", "sparsity: {algorithm: magnitude, sparsity: 0.7}\n");
  expect_done(run({"prune", run_dir(), folder_ / "prune.yaml", "--run-dir", run_dir("pruned")}),
              "magnitude");
  EXPECT_EQ(load_yaml(run_dir("pruned") + "/config.yaml").peek("data.unit").text(), "metre");
  write_text(folder_ / "prune.yaml", "sparsity: {algorithm: first_free, sparsity: 0.7}\n");
  expect_refused(run({"prune", run_dir(), folder_ / "prune.yaml", "--run-dir", run_dir("no")}),
                 "found 'first_free'; train with it instead");
}

TEST_F(OwnThings, AreSwept) {
  expect_done(run({"sweep", config(), "--over", "optimizer.lr=0.02,0.05", "--run-dir",
                   folder_ / "sweep", "--set", "train.epochs=1"}),
              "0.02");
}

}  // namespace
}  // namespace lacuna::own_things_test
