// Runs on sparse examples with several labels each: the tiled output layer, its sparsity,
// precision, predictions, kills, threads, and what bad configurations get.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <string>
#include <vector>

#include "framework/program/resume/resumed_run.h"

namespace lacuna::label_lists_runs_test {
namespace {

using testing::HasSubstr;

constexpr const char* kLabelListRun = R"(
data: {type: labelled_sparse, train: TRAIN, test: TEST, validation: 30}
model:
  - {type: embedding_bag, name: features, out_features: 16}
  - relu
  - {type: tiled_linear, name: classes, tile: 8}
optimizer: {type: adam, lr: 0.03}
sparsity: {algorithm: set, fan_in: 6, balance_out_groups: rows, layout: csr, update: {freq: 2}}
train: {steps: 18, batch_size: 10, accumulate: 2, threads: 1, log_every: 3, eval_every: 5, checkpoint: {every: 4, keep_last: 2}}
)";

// Label l has the features 2l and 2l + 1; an example has one or two labels, and a feature of none.
std::string sparse_examples(int64_t count, int64_t first) {
  std::string text = std::to_string(count) + " 50 20\n";
  for (int64_t i = first; i < first + count; ++i) {
    const int64_t a = i % 20, b = (7 * i + 3) % 20;
    std::vector<int64_t> labels = {a};
    if (i % 3 == 0 && a != b) labels.push_back(b);
    for (size_t l = 0; l < labels.size(); ++l)
      text += (l > 0 ? "," : "") + std::to_string(labels[l]);
    for (const int64_t label : labels) {
      text += " " + std::to_string(2 * label) + ":0.7 " + std::to_string(2 * label + 1) + ":0.5";
    }
    text += " " + std::to_string(40 + i % 10) + ":0.3\n";
  }
  return text;
}

class LabelListRuns : public Resume {
 protected:
  void SetUp() override {
    write_text(folder_ / "train.txt", sparse_examples(330, 0));
    write_text(folder_ / "test.txt", sparse_examples(60, 1000));
    std::string yaml = kLabelListRun;
    yaml.replace(yaml.find("TRAIN"), 5, folder_ / "train.txt");
    yaml.replace(yaml.find("TEST"), 4, folder_ / "test.txt");
    write_text(config(), yaml);
  }

  Ended with(const std::vector<std::string>& settings, const std::string& name = "run") const {
    std::vector<std::string> arguments;
    for (const std::string& setting : settings) {
      arguments.push_back("--set");
      arguments.push_back(setting);
    }
    return train(arguments, name);
  }
};

TEST_F(LabelListRuns, LearnAndReportPrecisions) {
  const Ended trained = with({"train.steps=150", "train.eval_every=50"});
  ASSERT_EQ(trained.code, 0) << trained.err;
  EXPECT_THAT(trained.err + trained.out, HasSubstr("P@1 "));
  const Config found = summary(run_dir());
  const auto at_1 = found.required<double>("test_precision_at_1");
  const auto at_3 = found.required<double>("test_precision_at_3");
  EXPECT_GT(at_1, 0.95);
  EXPECT_GT(at_3, 0.3);  // a third has a second label
  EXPECT_LE(at_3, 0.5);
  EXPECT_LT(found.required<double>("test_precision_at_5"), at_3);
  EXPECT_TRUE(found.has("validation_precision_at_1"));
  EXPECT_FALSE(found.has("test_accuracy"));
  int evaluations = 0;
  for (const Config& event : events(run_dir())) {
    if (event.get("split").text() == "test") {
      ++evaluations;
      EXPECT_TRUE(event.has("precision_at_5"));
    }
  }
  EXPECT_EQ(evaluations, 3);

  const Ended evaluated = run_lacuna({"eval", run_dir(), "--json"});
  ASSERT_EQ(evaluated.code, 0) << evaluated.err;
  EXPECT_THAT(evaluated.out,
              HasSubstr("\"precision_at_1\": " + found.at("test_precision_at_1").text()));
  EXPECT_THAT(run_lacuna({"eval", run_dir()}).out, HasSubstr("P@1 "));
}

TEST_F(LabelListRuns, PredictTheClassesWithTheLargestOutputs) {
  ASSERT_EQ(with({"train.steps=150"}).code, 0);
  write_text(folder_ / "in.txt", "2 50 20\n3,5 6:0.7 7:0.5 10:0.7 11:0.5\n 24:0.7 25:0.5\n");
  const Ended known =
      run_lacuna({"predict", run_dir(), folder_ / "in.txt", "--out", folder_ / "out.csv"});
  ASSERT_EQ(known.code, 0) << known.err;
  EXPECT_THAT(known.out, HasSubstr("P@1 50.00 %  P@3 33.33 %  P@5 20.00 % of 2 examples, by their "
                                   "labels"));
  const std::string out = read_text(folder_ / "out.csv");
  EXPECT_TRUE(out.starts_with("class1,logit1,class2,logit2,class3,logit3,")) << out;
  EXPECT_THAT(out, HasSubstr("\n12,"));  // that of the features 24 and 25
  write_text(folder_ / "other.txt", "1 51 20\n3 6:0.7\n");
  const Ended other =
      run_lacuna({"predict", run_dir(), folder_ / "other.txt", "--out", folder_ / "out.csv"});
  EXPECT_EQ(other.code, 1);
  EXPECT_THAT(other.err, HasSubstr("other.txt:1: expected 50 features"));
  EXPECT_EQ(read_text(folder_ / "out.csv"), out);
}

TEST_F(LabelListRuns, KilledRunsEndAsIfNothingHadHappened) { expect_survives({}); }

TEST_F(LabelListRuns, RigLRunsThatAreKilledEndAsIfNothingHadHappened) {
  expect_survives({"--set", "sparsity.algorithm=rigl", "--set", "train.shards=2"});
}

TEST_F(LabelListRuns, AreTheSameForAnyNumberOfThreads) {
  for (const char* algorithm : {"set", "rigl", "srigl"}) {
    const std::string sparsity =
        std::string("sparsity={algorithm: ") + algorithm + ", fan_in: 6, layout: csr, " +
        (std::string(algorithm) == "srigl" ? "" : "balance_out_groups: rows, ") +
        "update: {freq: 2}}";
    const std::string one = std::string(algorithm) + "1", three = std::string(algorithm) + "3";
    ASSERT_EQ(with({sparsity}, one).code, 0);
    ASSERT_EQ(with({sparsity, "train.threads=3"}, three).code, 0);
    EXPECT_EQ(timeless_events(run_dir(one)), timeless_events(run_dir(three))) << algorithm;
  }
}

// A head in one tile, or in a linear layer, is the same network with other first values.
TEST_F(LabelListRuns, LearnWithAnOrdinaryHeadToo) {
  const Ended trained =
      with({"model.2={type: linear, name: classes}", "train.steps=150", "sparsity=null"});
  ASSERT_EQ(trained.code, 0) << trained.err;
  EXPECT_GT(summary(run_dir()).required<double>("test_precision_at_1"), 0.95);
}

// The hidden layer's units are columns of the table and of all tiles.
TEST_F(LabelListRuns, ShrinkTheirHiddenLayerAndTrainOn) {
  ASSERT_EQ(with({"train.steps=150"}).code, 0);
  for (const char* method : {"magnitude", "saliency", "error"}) {
    const std::string small = std::string("by_") + method;
    const Ended ended = run_lacuna({"shrink", run_dir(), "--run-dir", run_dir(small), "--method",
                                    method, "--to", "parameters=0.6", "--round-to", "1"});
    ASSERT_EQ(ended.code, 0) << ended.err;
    const Config row = load_yaml(run_dir(small) + "/shrink.json").at("rows").items().front();
    EXPECT_EQ(row.at("layers").items().front().text(), "features");
    EXPECT_LT(row.required<int64_t>("kept"), 16);
    const Ended on = run_lacuna({"train", "--resume", "--run-dir", run_dir(small)});
    EXPECT_EQ(on.code, 0) << on.err;
  }
  const Ended classes = run_lacuna({"shrink", run_dir(), "--run-dir", run_dir("none"), "--to",
                                    "flops=0.5", "--set", "shrink.layers=classes"});
  EXPECT_EQ(classes.code, 2);
  EXPECT_THAT(classes.err, HasSubstr("no unit of layer 'classes' can be removed: layer 'classes' "
                                     "(tiled_linear) divides its outputs into tiles"));
  EXPECT_FALSE(std::filesystem::exists(run_dir("none")));
}

TEST_F(LabelListRuns, EvaluateAgainWithoutTheTrainingFile) {
  ASSERT_EQ(train().code, 0);
  const Ended whole = run_lacuna({"eval", run_dir()});
  std::filesystem::remove(folder_ / "train.txt");
  const Ended without = run_lacuna({"eval", run_dir()});
  ASSERT_EQ(without.code, 0) << without.err;
  const auto of_test = [](const std::string& out) { return out.substr(out.find("test  ")); };
  EXPECT_EQ(of_test(without.out), of_test(whole.out));
}

TEST_F(LabelListRuns, MistakesAreNamed) {
  const auto refused = [&](const std::vector<std::string>& settings, const std::string& words) {
    const Ended ended = with(settings);
    EXPECT_EQ(ended.code, 2) << words;
    EXPECT_THAT(ended.err, HasSubstr(words));
    EXPECT_FALSE(std::filesystem::exists(run_dir())) << words;
  };
  refused({"model.0={type: linear, out_features: 16}"},
          "the data has sparse examples, so the first layer must be an embedding_bag");
  refused(
      {"data={type: glyphs}", "model=[flatten, {type: embedding_bag, out_features: 4}, linear]"},
      "is for sparse examples, which data of type labelled_sparse has; give linear here");
  refused({"model.1={type: embedding_bag, out_features: 16}"}, "it must be the first layer");
  refused({"model.2={type: tiled_linear, out_features: 19}"}, "the data has 20 classes");
  refused({"loss={label_smoothing: 0.1}"}, "these have several labels; leave it out");
  refused({"loss={type: distillation, teacher: run}"},
          "distillation is for examples that have one class each");
  refused({"loss=mse"}, "mse needs regression targets");
  refused({"data.sampling=balanced"}, "balanced is for examples that have one class each");
  refused({"data.normalize=standard"}, "does not apply to inputs that are sparse examples");
  refused({"sparsity.balance_out_groups=row"}, "expected a number of groups, or rows");
  write_text(folder_ / "train.txt", "2 50 20\n1 2:0.5\n20 3:1\n");
  const Ended damaged = train();
  EXPECT_EQ(damaged.code, 1);
  EXPECT_THAT(damaged.err, HasSubstr("train.txt:3: label 20 is out of range"));
  EXPECT_FALSE(std::filesystem::exists(run_dir()));
}

}  // namespace
}  // namespace lacuna::label_lists_runs_test
