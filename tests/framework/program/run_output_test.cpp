// What a training run says: its first lines, as it goes, and what came of it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <string>

#include "framework/program/runs.h"

namespace lacuna::run_output_test {
namespace {

using testing::HasSubstr;
using testing::Not;

using RunOutput = RunFixture;

TEST_F(RunOutput, SaysTheResultAloneWhenQuietAndWritesTheLog) {
  const Ended ended = train({"--quiet"});
  EXPECT_EQ(ended.code, 0);
  EXPECT_EQ(ended.err, "");
  EXPECT_THAT(ended.out, testing::MatchesRegex("validation accuracy [0-9.]+ %, loss [0-9.]+; test "
                                               "accuracy [0-9.]+ %, loss [0-9.]+.*, " +
                                               run_dir() + "\n"));
  EXPECT_EQ(std::ranges::count(ended.out, '\n'), 1);
  EXPECT_THAT(read_text(run_dir() + "/log.txt"), HasSubstr("info: step 18/18"));
}

// On the console and in the log; also when such a run is resumed, and where it is planned.
TEST_F(RunOutput, WarnsOfARateThatIsZeroToTheEnd) {
  const std::string rate =
      "optimizer={type: sgd, lr: {type: cosine_once, init: 0.1, minimum: 0.0, half_period: 6}}";
  const std::string warning = "the learning rate is 0 from step 6 to the end of the run, step 18";
  const auto count = [&](const std::string& text) {
    int found = 0;
    for (size_t at = text.find(warning); at != std::string::npos; at = text.find(warning, at + 1)) {
      ++found;
    }
    return found;
  };
  ASSERT_EQ(train({"--set", rate}, "run", {.fault = "checkpoint.after_rename:2"}).code, -9);
  EXPECT_EQ(count(read_text(run_dir() + "/log.txt")), 1);
  const Ended resumed = train({"--resume"});
  EXPECT_EQ(resumed.code, 0);
  EXPECT_EQ(count(resumed.err), 1);
  EXPECT_EQ(count(run_lacuna({"plan", config(), "--set", rate}).err), 1);
  EXPECT_EQ(count(run_lacuna({"plan", config()}).err), 0);
}

TEST_F(RunOutput, SaysInTheEndWhatCameOfIt) {
  const Ended ended = train({"--set", "sparsity={sparsity: 0.8, param_filter: fc1.weight}", "--set",
                             "train.checkpoint.keep_best=true"});
  EXPECT_EQ(ended.code, 0);
  EXPECT_LE(std::ranges::count(ended.out, '\n'), 15);
  const Config end = summary(run_dir());
  const int hundredths = static_cast<int>(std::lround(1e4 * end.required<double>("test_accuracy")));
  const std::string accuracy = "accuracy " + std::to_string(hundredths / 100) + "\\.";
  EXPECT_THAT(ended.out, testing::ContainsRegex("last +validation [^\n]*; test " + accuracy +
                                                "[^\n]*\\(epoch 3, step 18\\)\n"));
  EXPECT_THAT(ended.out, testing::ContainsRegex("best +validation [^\n]*step " +
                                                end.at("best_step").text() + "\\)\n"));
  EXPECT_THAT(ended.out, HasSubstr("1,881 of 9,408 weights (sparsity 80.0 %, density 20.0 %)"));
  EXPECT_THAT(ended.out, HasSubstr("best.h5 is the best"));
  EXPECT_THAT(ended.out, HasSubstr("lacuna eval " + run_dir()));
  EXPECT_EQ(end.required<int>("sparse_numel"), 9408);
  EXPECT_EQ(end.required<int>("sparse_nnz"), 1881);
  // A value, a gradient and Adam's two states, of four bytes each.
  EXPECT_EQ(end.required<int>("dense_parameter_bytes"), 16 * end.required<int>("numel"));
}

TEST_F(RunOutput, SaysWhereTheBestIsNotKept) {
  // After the second evaluation the rate explodes.
  const Ended ended = train({"--set",
                             "optimizer={type: sgd, lr: {type: multi_step, init: 0.1, milestones: "
                             "[12], gamma: 1000}}"});
  ASSERT_EQ(ended.code, 0) << ended.err;
  ASSERT_NE(summary(run_dir()).required<int>("best_step"), 18);
  EXPECT_THAT(ended.out, testing::ContainsRegex("best +validation [^\n]*; not kept "
                                                "\\(train.checkpoint.keep_best\\)\n"));
}

// Those that only a phase of `dense` has in charge are made sparse by nothing.
TEST_F(RunOutput, CountsNoWeightsOfDensePhases) {
  const Ended ended = train({"--set",
                             "sparsity={phases: [{until: 4, algorithm: dense}, {algorithm: wanda, "
                             "sparsity: 0.5, calibration: 40, param_filter: fc1.weight}]}"});
  ASSERT_EQ(ended.code, 0) << ended.err;
  EXPECT_THAT(ended.err, HasSubstr("phases: at first 9,408 of 9,408 weights (sparsity 0.0 %, "
                                   "density 100.0 %) in 1 tensor\n"));
  EXPECT_THAT(ended.out, HasSubstr("4,704 of 9,408 weights (sparsity 50.0 %, density 50.0 %)"));
  EXPECT_EQ(summary(run_dir()).required<int>("sparse_numel"), 9408);
  EXPECT_EQ(summary(run_dir()).required<int>("sparse_nnz"), 4704);
  const Ended dense = train({"--set", "sparsity={algorithm: dense}"}, "dense");
  EXPECT_THAT(dense.err, HasSubstr("sparsity  dense: no weight is made sparse\n"));
  EXPECT_FALSE(summary(run_dir("dense")).has("sparse_numel"));
}

TEST_F(RunOutput, BeginsWithAFewPlainWords) {
  const Ended ended = train({"--set", "sparsity={sparsity: 0.8, param_filter: fc1.weight}"});
  const std::string header = ended.err.substr(0, ended.err.find("step 3/18"));
  EXPECT_LE(std::ranges::count(header, '\n'), 7) << header;
  EXPECT_THAT(header, HasSubstr("run       " + run_dir()));
  EXPECT_THAT(header, HasSubstr("static: at first 1,881 of 9,408 weights (sparsity 80.0 %"));
  EXPECT_THAT(header, HasSubstr("in 1 tensor\n"));
}

// The header, the lines of the steps and the end tell the same number: of the sparse weights.
TEST_F(RunOutput, TellsTheDensityOfTheSparseWeightsAsItGoes) {
  const Ended sparse = train({"--set", "sparsity={sparsity: 0.8, param_filter: fc1.weight}"});
  EXPECT_THAT(sparse.err, testing::ContainsRegex("step 3/18 [^\n]*  density 20\\.0 %  "));
  const Ended dense = train({"--set", "sparsity=null"}, "dense");
  EXPECT_THAT(dense.err, testing::ContainsRegex("step 3/18 [^\n]*  density 100\\.0 %  "));
}

TEST_F(RunOutput, SaysInDetailWhyAWeightIsStoredAsItIs) {
  const auto stored = [&](const std::string& limit) {
    return train({"-v", "--set", "sparsity={sparsity: 0.8, param_filter: fc1.weight}", "--set",
                  "csr_up_to={fc1.weight: " + limit + "}"},
                 "run" + limit)
        .err;
  };
  EXPECT_THAT(stored("0.683"), HasSubstr("1881 nonzeros, stored as csr (csr is faster up to a "
                                         "density of 68 %)\n"));
  EXPECT_THAT(stored("1.0"), HasSubstr("(csr is faster at every density)\n"));
  EXPECT_THAT(stored("0.0"), HasSubstr("(masked is faster at every density)\n"));
}

// The console shows a training line for each twentieth of a run and evaluations for each fiftieth;
// the log file has each report.
TEST_F(RunOutput, SaysNoMoreOfALongRunThanOfAShortOne) {
  const Ended ended = train(
      {"--set", "train.steps=200", "--set", "train.log_every=1", "--set", "train.eval_every=2"});
  EXPECT_EQ(ended.code, 0);
  EXPECT_LE(std::ranges::count(ended.err, '\n'), 6 + 21 + 2 * 51) << ended.err;
  EXPECT_THAT(ended.err, HasSubstr("step 200/200"));
  EXPECT_THAT(read_text(run_dir() + "/log.txt"), HasSubstr("debug: step 199/200"));
  const Ended verbose = train({"--set", "train.steps=200", "--set", "train.log_every=1", "--set",
                               "train.eval_every=2", "-v"},
                              "verbose");
  EXPECT_THAT(verbose.err, HasSubstr("step 199/200"));
  EXPECT_THAT(verbose.err, HasSubstr("fc1.weight [12, 784]"));
  // The table stands on the standard output, and not a second time beside it.
  EXPECT_THAT(verbose.out, HasSubstr("\nresults   "));
  EXPECT_THAT(verbose.err, Not(HasSubstr("results   ")));
  EXPECT_THAT(read_text(run_dir("verbose") + "/log.txt"), HasSubstr("results   "));
}

}  // namespace
}  // namespace lacuna::run_output_test
