// `lacuna train CONFIG --init-from …`: beginning with the weights of another run.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <string>
#include <vector>

#include "framework/program/runs.h"
#include "lacuna/framework/train/parts/experiment.hpp"

namespace lacuna::fine_tuning_test {
namespace {

using testing::HasSubstr;
using testing::Not;

class FineTuning : public RunFixture {
 protected:
  FineTuning() { write_text(config(), text("")); }

  static std::string text(const std::string& sparsity) {
    return "data: {type: glyphs, train_size: 100, test_size: 20}\n"
           "model: [flatten, {type: linear, name: fc1, out_features: 20}, relu,\n"
           "        {type: linear, name: fc2, out_features: 10}]\n"
           "optimizer: {type: adam, lr: 0.01}\n" +
           sparsity + "train: {epochs: 1, batch_size: 20, threads: 1}\n";
  }
  // Two runs to begin with: a dense one, and one with half of fc1's weights.
  void begin() {
    ASSERT_EQ(train({}, "dense").code, 0);
    ASSERT_EQ(train({"--set",
                     "sparsity={algorithm: set, sparsity: 0.5, param_filter: fc1.weight, "
                     "update: {freq: 2}}"},
                    "half")
                  .code,
              0);
  }
  // Trains with this section from such a run, to its first checkpoint alone.
  Ended from(const std::string& run, const std::string& sparsity) {
    write_text(config(), text(sparsity));
    ++number_;
    const Ended ended = train({"--init-from", run_dir(run)}, name(), {.fault = "step.between:1"});
    EXPECT_EQ(ended.code, -9) << ended.err;
    return ended;
  }
  std::string name() const { return "tuned" + std::to_string(number_); }

  // Of fc1's weights in a run's first or last checkpoint, zeros included.
  Tensor weights(const std::string& run) const {
    const std::string path = find_checkpoint(run_dir(run)).path();
    const Config resolved = parse_yaml(CheckpointFile(path).read_config(), "config");
    const auto model = restore_model(resolved, read_checkpoint(path).state, Shape{28, 28});
    return model->parameter("fc1.weight")->to_dense();
  }
  // Whether what is left of the one are the largest of the other, `count` of them.
  void expect_largest(const Tensor& left, const Tensor& of, int64_t count) {
    float smallest_left = 1e30f, largest_gone = 0.0f;
    int64_t found = 0;
    for (int64_t i = 0; i < left.numel(); ++i) {
      const float magnitude = std::abs(of.data()[i]);
      if (left.data()[i] != 0.0f) {
        ++found;
        EXPECT_EQ(left.data()[i], of.data()[i]);
        smallest_left = std::min(smallest_left, magnitude);
      } else {
        largest_gone = std::max(largest_gone, magnitude);
      }
    }
    EXPECT_EQ(found, count);
    EXPECT_GE(smallest_left, largest_gone);
  }

 private:
  int number_ = 0;
};

constexpr int64_t kWeights = 28 * 28 * 20;

TEST_F(FineTuning, PrunesByMagnitudeWhereMoreIsAskedFor) {
  begin();
  const std::string tail = "sparsity: 0.9, param_filter: fc1.weight";
  for (const std::string& entry : {
           "{algorithm: static, " + tail + "}",
           "{algorithm: set, " + tail + ", update: {freq: 2}}",
           "{algorithm: rigl, " + tail + ", update: {freq: 2}}",
           "{algorithm: snfs, " + tail + ", update: {freq: 2}}",
           "{phases: [{until: 3, algorithm: set, " + tail +
               ", update: {freq: 2}}, {algorithm: "
               "dense, param_filter: fc1.weight}]}",
           "[{algorithm: rigl, " + tail + ", update: {freq: 2}}]",
           std::string("{algorithm: gmp, sparsity: {type: polynomial, init: 0.9, final: 0.95, "
                       "start: 0, end: 4}, param_filter: fc1.weight, update: {freq: 2}}"),
       }) {
    for (const char* run : {"dense", "half"}) {
      const Ended ended = from(run, "sparsity: " + entry + "\n");
      EXPECT_THAT(ended.err,
                  HasSubstr("init_from: the loaded weights were pruned by magnitude, from " +
                            std::to_string(run == std::string("dense") ? kWeights : kWeights / 2) +
                            " nonzeros to 1568 (fc1.weight); init_method: inherit\n"))
          << entry;
      EXPECT_THAT(read_text(run_dir(name()) + "/log.txt"), HasSubstr("pruned by magnitude"));
      expect_largest(weights(name()), weights(run), kWeights / 10);
    }
  }
}

TEST_F(FineTuning, SaysWhatBecomesOfTheLoadedMasks) {
  begin();
  EXPECT_THAT(from("half", "").err,
              HasSubstr("init_from: the loaded masks are kept: 7840 nonzeros (fc1.weight)\n"));
  EXPECT_THAT(from("half",
                   "sparsity: {algorithm: set, sparsity: 0.2, param_filter: fc1.weight, "
                   "update: {freq: 2}}\n")
                  .err,
              HasSubstr("init_from: the loaded masks are kept: 7840 nonzeros (fc1.weight); "
                        "init_method: inherit\n"));
  EXPECT_THAT(from("half",
                   "sparsity: {algorithm: gmp, sparsity: {type: polynomial, init: 0.0, "
                   "final: 0.9, start: 0, end: 4}, param_filter: fc1.weight, update: "
                   "{freq: 2}}\n")
                  .err,
              HasSubstr("warning: init_from: the loaded masks are not kept: they had 7840 "
                        "nonzeros, and gmp begins with 15680 (fc1.weight); `init_method: inherit` "
                        "in the sparsity section keeps them\n"));
  EXPECT_THAT(from("dense",
                   "sparsity: {sparsity: 0.9, init_method: random, param_filter: "
                   "fc1.weight}\n")
                  .err,
              HasSubstr("pruned by init_method, from 15680 nonzeros to 1568 (fc1.weight); "
                        "init_method: random\n"));
  // As many nonzeros, and most of them at other places.
  const std::string drawn = from("half",
                                 "sparsity: {sparsity: 0.5, init_method: random, param_filter: "
                                 "fc1.weight}\n")
                                .err;
  EXPECT_THAT(drawn, Not(HasSubstr("pruned")));
  EXPECT_THAT(drawn,
              testing::ContainsRegex(
                  "init_from: the loaded masks are not kept: of 7840 nonzeros that "
                  "init_method chose, [1-7][0-9][0-9][0-9] are among the 7840 that were loaded "
                  "\\(fc1.weight\\); init_method: random\n"));
  EXPECT_THAT(from("dense", "").err, Not(HasSubstr("init_from")));
  EXPECT_THAT(from("dense", "sparsity: {sparsity: 0.0, param_filter: fc1.weight}\n").err,
              Not(HasSubstr("init_from")));
}

// The header says what is sparse, whoever keeps it so.
TEST_F(FineTuning, TheHeaderTellsOfMasksThatAreKept) {
  begin();
  const Ended kept = from("half", "");
  EXPECT_THAT(kept.err,
              HasSubstr("sparsity  no algorithm; the masks that came with the weights are "
                        "kept, 7,840 of 15,680 weights (sparsity 50.0 %, density 50.0 %) "
                        "in 1 tensor\n"));
  EXPECT_THAT(kept.err, Not(HasSubstr("dense training")));
  const Ended resumed = run_lacuna({"train", "--resume", "--run-dir", run_dir(name())});
  EXPECT_THAT(resumed.err, HasSubstr("sparsity  no algorithm; the masks that came"));
  EXPECT_THAT(from("half", "sparsity: {sparsity: 0.5, param_filter: fc2.weight}\n").err,
              HasSubstr("; of the others the masks that came with the weights are kept, 7,840 of"));
  EXPECT_THAT(from("dense", "").err, HasSubstr("sparsity  none: dense training\n"));
}

TEST_F(FineTuning, TakesWhatInitFromTakes) {
  begin();
  for (const char* file : {"w.safetensors", "w.npz"}) {
    ASSERT_EQ(
        run_lacuna({"export", run_dir("dense"), "--format",
                    std::string(file) == "w.npz" ? "npz" : "safetensors", "--out", folder_ / file})
            .code,
        0);
  }
  const std::string checkpoint = find_checkpoint(run_dir("dense")).path();
  int number = 0;
  for (const std::string& source :
       {run_dir("dense"), checkpoint, folder_ / "w.safetensors", folder_ / "w.npz"}) {
    const std::string name = "of" + std::to_string(number++);
    const Ended ended = train({"--init-from", source, "--set", "optimizer.lr=0"}, name);
    ASSERT_EQ(ended.code, 0) << ended.err;
    EXPECT_THAT(
        differences(read_checkpoint(find_checkpoint(run_dir(name)).path()).state.below("model"),
                    read_checkpoint(checkpoint).state.below("model")),
        testing::IsEmpty())
        << source;
    const Config model = load_yaml(run_dir(name) + "/config.yaml").at("model");
    EXPECT_EQ(model.at("init_from").text(), source);
  }
}

// What a configuration says beside the path stays.
TEST_F(FineTuning, KeepsTheRulesOfTheConfiguration) {
  begin();
  std::string other = text("");
  other.replace(other.find("model: ["), 8,
                "model:\n  init_from: {path: nowhere, skip: fc2.*}\n  "
                "layers: [");
  other.replace(other.find("out_features: 10"), 16, "out_features: 10, bias: false");
  write_text(config(), other);
  const Ended ended = train({"--init-from", "dense", "--set", "optimizer.lr=0"}, "tuned",
                            {.folder = folder_.path()});
  ASSERT_EQ(ended.code, 0) << ended.err;
  const Config kept = load_yaml(run_dir("tuned") + "/config.yaml").at("model").at("init_from");
  EXPECT_EQ(kept.at("path").text(), run_dir("dense"));
  EXPECT_EQ(kept.at("skip").text(), "fc2.*");
}

TEST_F(FineTuning, NamesTheArgumentThatIsWrong) {
  begin();
  const auto refused = [&](const std::vector<std::string>& arguments, int code,
                           const std::string& message) {
    const Ended ended = run_lacuna(arguments);
    EXPECT_EQ(ended.code, code);
    EXPECT_THAT(ended.err, HasSubstr(message));
    EXPECT_THAT(ended.err, Not(HasSubstr("model.init_from")));
    EXPECT_FALSE(std::filesystem::exists(run_dir("new")));
  };
  const std::string missing = folder_ / "nowhere", junk = folder_ / "junk.safetensors";
  write_text(junk, "x");
  for (const std::string& file : {missing, junk}) {
    refused({"train", config(), "--run-dir", run_dir("new"), "--init-from", file}, 1,
            "error: --init-from: ");
    refused({"train", config(), "--run-dir", run_dir("new"), "--init-from", file}, 1,
            "'" + file + "'");
    refused({"import", file, "--config", config(), "--out", run_dir("new")}, 1,
            "error: import " + file + ": ");
  }
  write_text(folder_ / "other.yaml", text("") + "run_dir: x\n");
  std::string wide = text("");
  wide.replace(wide.find("out_features: 20"), 16, "out_features: 24");
  write_text(folder_ / "wide.yaml", wide);
  refused({"train", folder_ / "wide.yaml", "--run-dir", run_dir("new"), "--init-from",
           run_dir("dense")},
          1, "'fc1.weight'");
  refused({"train", "--resume", "--run-dir", run_dir("dense"), "--init-from", run_dir("half")}, 2,
          "--init-from cannot be used with --resume");
  // Where the file says it, the position in it is told.
  const Ended stated = train({"--set",
                              "model={init_from: nowhere, layers: [flatten, {type: "
                              "linear}]}"},
                             "new");
  EXPECT_THAT(stated.err, HasSubstr("error: --set model="));
  write_text(config(),
             "model:\n  init_from: nowhere\n  layers: [flatten, {type: linear}]\n"
             "data: {type: glyphs, train_size: 20, test_size: 20}\n"
             "optimizer: {type: adam}\n");
  EXPECT_THAT(train({}, "new").err, HasSubstr("config.yaml:2:14: model.init_from: "));
}

}  // namespace
}  // namespace lacuna::fine_tuning_test
