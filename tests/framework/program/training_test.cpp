// What a training run does and leaves, seen from outside.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "framework/program/runs.h"
#include "lacuna/framework/core/parallel.h"

namespace lacuna::training_test {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

class Training : public RunFixture {
 protected:
  StateDict final_state(const std::string& name = "run") const {
    return find_checkpoint(run_dir(name)).read().state;
  }
  std::vector<std::string> steps_of(const std::string& split) const {
    std::vector<std::string> steps;
    for (const Config& event : events(run_dir())) {
      if (event.at("split").text() == split) steps.push_back(event.at("step").text());
    }
    return steps;
  }
};

TEST_F(Training, LeavesAFolderThatTellsEverything) {
  const Ended ended = train({"--set", "sparsity={sparsity: 0.8, param_filter: fc1.weight}"});
  EXPECT_EQ(ended.code, 0);
  EXPECT_THAT(read_text(run_dir() + "/log.txt"),
              HasSubstr("fc1.weight [12, 784], static, 1881 nonzeros"));
  EXPECT_EQ(listing(run_dir()),
            "checkpoints config.yaml confusion.json log.txt masks metrics.jsonl started.jsonl "
            "summary.json");
  EXPECT_EQ(listing(run_dir() + "/checkpoints"), "step-0000000016.h5 step-0000000018.h5");
  EXPECT_THAT(read_text(run_dir() + "/log.txt"), HasSubstr("info: step 3/18  epoch 0.500  loss "));

  const Config end = summary(run_dir());
  for (const char* key : {"test_accuracy", "test_loss", "train_loss", "epochs", "steps",
                          "train_seconds", "examples_per_second", "peak_rss_bytes", "numel", "nnz",
                          "seed", "threads", "instruction_set", "version", "arithmetic_revision"}) {
    EXPECT_TRUE(end.has(key)) << key;
  }
  EXPECT_EQ(end.required<double>("epochs"), 3.0);
  EXPECT_EQ(end.required<int>("steps"), 18);
  EXPECT_EQ(end.required<int>("numel"), 784 * 12 + 12 + 12 * 10 + 10);
  EXPECT_EQ(end.required<int>("nnz"), 1881 + 12 + 12 * 10 + 10);
  EXPECT_GT(end.required<double>("examples_per_second"), 0.0);
}

TEST_F(Training, WritesAnEventForEverySplit) {
  ASSERT_EQ(train({"--set", "sparsity=0.8"}).code, 0);
  EXPECT_THAT(steps_of("train"), ElementsAre("3", "6", "9", "12", "15", "18"));
  EXPECT_THAT(steps_of("validation"), ElementsAre("5", "10", "15", "18"));
  EXPECT_THAT(steps_of("test"), ElementsAre("5", "10", "15", "18"));
  const Config event = events(run_dir()).front();
  for (const char* key : {"step", "epoch", "split", "loss", "accuracy", "lr", "examples_per_second",
                          "seconds", "sparsity"}) {
    EXPECT_TRUE(event.has(key)) << key;
  }
  const Config sparsity = event.at("sparsity").entries().front().second;
  EXPECT_NEAR(sparsity.required<double>("target"), 0.8, 1e-7);
  EXPECT_NEAR(sparsity.required<double>("actual"), 0.8, 1e-3);
}

// The resolved configuration is enough to run again, and a seed changes the run.
TEST_F(Training, RepeatsItselfFromTheResolvedConfiguration) {
  ASSERT_EQ(train({"--seed", "7"}).code, 0);
  ASSERT_EQ(run_lacuna({"train", run_dir() + "/config.yaml", "--run-dir", run_dir("again")}).code,
            0);
  EXPECT_THAT(differences(final_state(), final_state("again")), IsEmpty());
  EXPECT_EQ(timeless_events(run_dir()), timeless_events(run_dir("again")));
  ASSERT_EQ(train({"--seed", "8"}, "other").code, 0);
  EXPECT_THAT(differences(final_state(), final_state("other")), Not(IsEmpty()));
  EXPECT_EQ(summary(run_dir("other")).required<int>("seed"), 8);
}

TEST_F(Training, GivesTheSameBitsWithOneThreadAndTwo) {
  const std::vector<std::string> bigger = {"--set", "train.batch_size=45", "--set",
                                           "model.1.out_features=300"};
  const auto with = [&](const std::string& threads) {
    std::vector<std::string> arguments = bigger;
    arguments.insert(arguments.end(), {"--threads", threads});
    ASSERT_EQ(train(arguments, threads).code, 0);
    EXPECT_EQ(summary(run_dir(threads)).at("threads").text(), threads);
  };
  with("1");
  with("2");
  EXPECT_THAT(read_text(run_dir("2") + "/log.txt"), HasSubstr("2 threads, "));
  EXPECT_THAT(differences(final_state("1"), final_state("2")), IsEmpty());
}

// Two batches of 8 make the gradient of one of 16; only the order of the sums differs.
TEST_F(Training, AccumulatesToTheGradientOfALargerBatch) {
  const std::vector<std::string> sgd = {"--set", "optimizer={type: sgd, lr: 0.05}", "--set",
                                        "model.3.p=0"};
  const auto with = [&](const std::string& batch, const std::string& accumulate) {
    std::vector<std::string> arguments = sgd;
    arguments.insert(arguments.end(), {"--set", "train.batch_size=" + batch, "--set",
                                       "train.accumulate=" + accumulate});
    ASSERT_EQ(train(arguments, batch).code, 0);
  };
  with("8", "2");
  with("16", "1");
  const std::vector<float> two = final_state("8").get<Tensor>("model/fc1.weight").to_vector();
  const std::vector<float> one = final_state("16").get<Tensor>("model/fc1.weight").to_vector();
  ASSERT_EQ(two.size(), one.size());
  // 18 steps, each with a rounding of some 1e-7 of an update of some 1e-2.
  for (size_t i = 0; i < one.size(); ++i) ASSERT_NEAR(two[i], one[i], 1e-6) << i;
}

TEST_F(Training, KeepsTheBestByValidation) {
  ASSERT_EQ(train({"--set", "train.checkpoint={every: 5, keep_last: 1, keep_best: true}"}).code, 0);
  EXPECT_EQ(listing(run_dir() + "/checkpoints"), "best.h5 step-0000000018.h5");
  double best = -1.0, its_loss = 0.0;
  std::string best_step;
  for (const Config& event : events(run_dir())) {
    if (event.at("split").text() != "validation") continue;
    const auto accuracy = event.required<double>("accuracy"), loss = event.required<double>("loss");
    if (accuracy < best || (accuracy == best && loss >= its_loss)) continue;
    best = accuracy, its_loss = loss;
    best_step = event.at("step").text();
  }
  EXPECT_EQ(std::to_string(read_checkpoint(run_dir() + "/checkpoints/best.h5").step), best_step);
  const Ended ended = run_lacuna({"eval", run_dir() + "/checkpoints/best.h5", "--json"});
  EXPECT_EQ(parse_yaml(ended.out, "out").at("splits").items()[0].required<double>("accuracy"),
            best);
}

// Accuracies below 1 cannot beat the first by 1: that is no gain for early stopping, but the best.
TEST_F(Training, KeepsTheBestEvenWhereItIsNoGainForEarlyStopping) {
  const Ended ended =
      train({"--set", "data={type: glyphs, train_size: 400, test_size: 20, validation: 100}",
             "--set", "train.eval_every=10", "--set", "train.checkpoint.keep_best=true", "--set",
             "train.epochs=20", "--set", "train.early_stopping={patience: 10, min_delta: 1}"});
  EXPECT_EQ(ended.code, 0) << ended.err;
  EXPECT_EQ(summary(run_dir()).required<int>("steps"), 110);
  double best = 0.0;
  for (const Config& event : events(run_dir())) {
    if (event.at("split").text() != "validation") continue;
    best = std::max(best, event.required<double>("accuracy"));
  }
  const StateDict kept = read_checkpoint(run_dir() + "/checkpoints/best.h5").state;
  EXPECT_EQ(kept.get<double>("trainer/best_score"), best);
  EXPECT_GT(best, kept.get<double>("trainer/score_to_beat"));
}

// What early stopping ends is judged, evaluated and used as it was when it was best.
TEST_F(Training, GoesBackToTheBestWhereItStopsEarly) {
  const Ended ended = train({"--set", "optimizer={type: sgd, lr: 0.5}", "--set", "train.epochs=40",
                             "--set", "train.early_stopping={patience: 2}"});
  ASSERT_EQ(ended.code, 0) << ended.err;
  const Config end = summary(run_dir());
  ASSERT_TRUE(end.required<bool>("stopped_early"));
  const auto best_step = end.required<int>("best_step"), steps = end.required<int>("steps");
  ASSERT_LT(best_step, steps);
  EXPECT_THAT(ended.err, HasSubstr("the model has the weights of step " +
                                   std::to_string(best_step) + ", the best"));
  EXPECT_EQ(read_checkpoint(run_dir() + "/checkpoints/best.h5").step, best_step);
  const auto step_of = [&](const std::vector<std::string>& options, const char* words) {
    std::vector<std::string> arguments = {"eval", run_dir(), "--json"};
    arguments.insert(arguments.end(), options.begin(), options.end());
    const Ended evaluated = run_lacuna(arguments);
    EXPECT_THAT(evaluated.err, HasSubstr(words));
    return parse_yaml(evaluated.out, "out").required<int>("step");
  };
  EXPECT_EQ(step_of({}, "best.h5 (the best; --last selects the last)"), best_step);
  EXPECT_EQ(step_of({"--last"}, "(the last)"), steps);
  write_text(run_dir() + "/checkpoints/best.h5", "damaged");
  EXPECT_EQ(step_of({}, "using the last checkpoint"), steps);
}

// A learning rate of 0 never gets better.
TEST_F(Training, StopsEarlyAndStaysStopped) {
  const std::vector<std::string> frozen = {"--set", "optimizer={type: sgd, lr: 0}", "--set",
                                           "train.early_stopping={patience: 2}"};
  const Ended ended = train(frozen);
  EXPECT_EQ(ended.code, 0);
  EXPECT_THAT(
      ended.err,
      HasSubstr(
          "early stopping at step 15: the validation result has not improved in 2 evaluations"));
  EXPECT_THAT(steps_of("validation"), ElementsAre("5", "10", "15"));
  EXPECT_EQ(summary(run_dir()).required<int>("steps"), 15);
  EXPECT_TRUE(summary(run_dir()).required<bool>("stopped_early"));
  EXPECT_TRUE(std::filesystem::exists(checkpoint(15)));
  const Ended again = train({"--resume", "--set", "train.epochs=5"});
  EXPECT_EQ(again.code, 0);
  EXPECT_THAT(again.err, HasSubstr("nothing is left to train: early stopping has ended the run at "
                                   "step 15 of 30; to continue: lacuna train --resume --run-dir " +
                                   run_dir() +
                                   " --set train.early_stopping.patience=4 (or --set "
                                   "train.early_stopping=null, to the end)"));
}

TEST_F(Training, StopsWhenTheLossIsNotFinite) {
  const Ended ended = train({"--set", "optimizer={type: sgd, lr: 1e30}"});
  EXPECT_EQ(ended.code, 1);
  EXPECT_THAT(ended.err,
              HasSubstr("error: the training loss is NaN or infinite at step 2: training "
                        "has stopped, and the last checkpoint is of step 0"));
  EXPECT_THAT(read_text(run_dir() + "/log.txt"), HasSubstr("error: the training loss is NaN"));
  EXPECT_EQ(listing(run_dir() + "/checkpoints"), "step-0000000000.h5");
  EXPECT_EQ(read_checkpoint(checkpoint(0)).step, 0);
  EXPECT_FALSE(std::filesystem::exists(run_dir() + "/summary.json"));
}

// The loss of the step was finite, and the update made the weights infinite: not to be saved.
TEST_F(Training, SavesNoParameterThatIsNotFinite) {
  const Ended ended = train({"--set", "optimizer={type: sgd, lr: 3e38, weight_decay: 1000}",
                             "--set", "train.checkpoint.every=1"});
  EXPECT_EQ(ended.code, 1);
  EXPECT_THAT(ended.err, HasSubstr("is NaN or infinite at step 1: training has stopped"));
  EXPECT_EQ(listing(run_dir() + "/checkpoints"), "step-0000000000.h5");
}

// Before anything is written; more bytes than any machine has.
TEST_F(Training, RefusesAModelThatThereIsNoMemoryFor) {
  std::string text = kTinyRun;
  text.replace(text.find("out_features: 12"), 16, "out_features: 1000000000000000");
  write_text(config(), text);
  const Ended ended = train();
  EXPECT_EQ(ended.code, 1);
  EXPECT_THAT(ended.err,
              HasSubstr("config.yaml:5:5: model.1: layer 'fc1' (linear): parameter 'fc1.weight' "
                        "[1000000000000000, 784] with 784000000000000000 values: out of memory: "
                        "3136000000000.0 MB more were requested, and there are "));
  EXPECT_FALSE(std::filesystem::exists(run_dir()));
}

TEST_F(Training, RefusesAFolderWithARun) {
  ASSERT_EQ(train().code, 0);
  const std::string before = read_text(run_dir() + "/log.txt");
  const Ended ended = train();
  EXPECT_EQ(ended.code, 1);
  EXPECT_EQ(ended.err,
            "error: the run folder '" + run_dir() +
                "' holds a run already; continue it with `lacuna train --resume --run-dir " +
                run_dir() + "`, or choose another folder with --run-dir\n");
  EXPECT_EQ(read_text(run_dir() + "/log.txt"), before);
}

TEST_F(Training, RefusesAFolderThatIsNone) {
  write_text(folder_ / "file", "x");
  EXPECT_THAT(train({}, "file").err, HasSubstr("is a file; choose another folder"));
  EXPECT_EQ(train({}, "file").code, 1);
  const Ended below = train({}, "file/run");
  EXPECT_EQ(below.code, 1);
  EXPECT_THAT(below.err, HasSubstr("cannot make the run folder '" + run_dir("file/run") +
                                   "': Not a directory"));
  std::filesystem::create_directory(folder_ / "mine");
  write_text(folder_ / "mine/thesis.txt", "x");
  const Ended used = train({}, "mine");
  EXPECT_EQ(used.code, 1);
  EXPECT_THAT(used.err, HasSubstr("holds no run, but other files ('thesis.txt')"));
  EXPECT_EQ(listing(folder_ / "mine"), "thesis.txt");
}

TEST_F(Training, KeepsTheLastCheckpointWhenTheDiskIsFull) {
  ASSERT_EQ(train({}, "run", {.fault = "step.between:6"}).code, -9);
  const Checkpoint before = read_checkpoint(checkpoint(4));
  const Ended ended = train({"--resume"}, "run", {.max_file_bytes = 60000});
  EXPECT_EQ(ended.code, 1);
  EXPECT_THAT(ended.err,
              HasSubstr("error: the checkpoint '" + checkpoint(8) + "' was not written: "));
  EXPECT_THAT(ended.err, HasSubstr("File too large"));
  EXPECT_EQ(listing(run_dir() + "/checkpoints"), "step-0000000000.h5 step-0000000004.h5");
  EXPECT_THAT(differences(before.state, read_checkpoint(checkpoint(4)).state), IsEmpty());
  EXPECT_EQ(train({"--resume"}).code, 0);
  ASSERT_EQ(train({}, "whole").code, 0);
  EXPECT_THAT(differences(final_state(), final_state("whole")), IsEmpty());
}

TEST_F(Training, TracesTheFirstBackwardPassOnRequest) {
  const Ended ended = train({"--set", "train.trace_autograd=true", "--set", "train.steps=2"});
  EXPECT_EQ(ended.code, 0);
  EXPECT_THAT(ended.err, HasSubstr("backward  cross_entropy"));
  EXPECT_THAT(ended.err, HasSubstr("backward  linear"));
  EXPECT_THAT(ended.err, testing::ContainsRegex("storage orders: [0-9]+ conversions? forward"));
}

TEST_F(Training, TakesTheLengthInEitherUnit) {
  ASSERT_EQ(train({"--set", "train.steps=5"}).code, 0);
  EXPECT_EQ(summary(run_dir()).required<int>("steps"), 5);
  EXPECT_FALSE(load_yaml(run_dir() + "/config.yaml").at("train").has("epochs"));
}

}  // namespace
}  // namespace lacuna::training_test
