#include "lacuna/framework/report/run_table.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <tuple>
#include <utility>

#include "lacuna/framework/io/yaml.h"
#include "lacuna/framework/report/tasks.hpp"

namespace lacuna::run_table_test {
namespace {

RunData run_with(const std::string& name, std::vector<double> accuracies,
                 std::vector<double> losses, const std::string& config = "{}") {
  RunData run{.folder = name, .name = name};
  run.state = "finished";
  run.config = parse_yaml(config, "config.yaml");
  for (size_t i = 0; i < losses.size(); ++i) {
    const auto step = static_cast<double>(10 * (i + 1));
    run.splits["test"]["loss"].add(step, losses[i]);
    if (i < accuracies.size()) run.splits["test"]["accuracy"].add(step, accuracies[i]);
  }
  return run;
}

std::string heading(const TextTable& table) {
  std::string line;
  for (const std::string& column : table.columns) line += column + "; ";
  return line;
}

TEST(RunTable, TakesTheLastResultAndTheBest) {
  const RunResult result = result_of(run_with("a", {0.5, 0.75, 0.7}, {2.0, 1.0, 0.5}));
  EXPECT_EQ(result.accuracy, 0.7);
  EXPECT_EQ(result.best_accuracy, 0.75);
  EXPECT_EQ(result.best_step, 20.0);
  EXPECT_EQ(result.best_loss, 1.0);
  EXPECT_EQ(result.step, 30.0);
  EXPECT_TRUE(std::isnan(result.nnz));
}

TEST(RunTable, JudgesByTheValidationSplitWhereThereIsOne) {
  RunData run = run_with("a", {0.5, 0.75, 0.7}, {2.0, 1.0, 0.5});
  for (const auto& [step, accuracy] : {std::pair{10.0, 0.8}, {20.0, 0.6}, {30.0, 0.7}}) {
    run.splits["validation"]["loss"].add(step, 3.0 - step / 10);
    run.splits["validation"]["accuracy"].add(step, accuracy);
  }
  EXPECT_EQ(result_of(run).best_step, 10.0);
  EXPECT_EQ(result_of(run).best_accuracy, 0.5);  // of the test split
  for (const double step : {10.0, 20.0, 30.0})
    run.splits["validation"]["perplexity"].add(step, 1.0);
  EXPECT_EQ(result_of(run).best_step, 30.0);  // of tokens by the loss
}

TEST(RunTable, TakesTheLowerLossOfEqualAccuracies) {
  const RunResult result = result_of(run_with("a", {0.75, 0.75, 0.75}, {2.0, 1.0, 1.5}));
  EXPECT_EQ(result.best_step, 20.0);
  EXPECT_EQ(result.best_loss, 1.0);
}

// As the trainer does, where nothing is summed up yet.
TEST(RunTable, JudgesAnewWhatHasBeenPruned) {
  RunData run = run_with("a", {0.9, 0.4, 0.5, 0.45}, {1.0, 2.0, 1.9, 1.8});
  EXPECT_EQ(result_of(run).best_step, 10.0);
  run.layers.emplace_back().name = "w";
  for (const auto& [step, density] : {std::pair{5.0, 0.5}, {15.0, 0.2}}) {
    run.layers[0].actual.add(step, density);
  }
  EXPECT_EQ(result_of(run).best_step, 30.0);
  EXPECT_EQ(result_of(run).best_accuracy, 0.5);
  run.summary = Config::map({{"best_step", int64_t{40}}});
  EXPECT_EQ(result_of(run).best_step, 40.0);
}

// What was evaluated before quantization began is not compared with what was evaluated after.
TEST(RunTable, JudgesQuantizedEvaluationsByThemselves) {
  RunData run = run_with("a", {0.9, 0.8, 0.5, 0.4}, {1.0, 1.1, 1.9, 2.0});
  run.epochs_of_a_step = 0.1;
  run.config =
      Config::map({{"quantize", Config::map({{"algorithm", "qat"}, {"start_epoch", 2.0}})}});
  EXPECT_EQ(result_of(run).best_step, 30.0);
  run.config.set_path("quantize.algorithm", "gptq");
  EXPECT_EQ(result_of(run).best_step, 10.0);
}

// Events of training may come seldom; those of updates tell all that is pruned, and how much of it.
TEST(RunTable, JudgesAnewByTheUpdatesOfMasks) {
  RunData run = run_with("a", {0.9, 0.4, 0.5, 0.45}, {1.0, 2.0, 1.9, 1.8});
  LayerData& large = run.layers.emplace_back();
  large.name = "large";
  large.actual.add(40.0, 0.2);
  for (const auto& [step, nnz, dropped] : {std::tuple{15.0, 500.0, 500.0}, {35.0, 496.0, 4.0}}) {
    large.nnz.add(step, nnz);
    large.dropped.add(step, dropped);
    large.grown.add(step, 0.0);
  }
  EXPECT_EQ(result_of(run).best_step, 30.0);
  // What a small layer loses next to a large one is less than 1 %.
  LayerData& small = run.layers.emplace_back();
  small.name = "small";
  for (const auto& [step, nnz, dropped] : {std::tuple{15.0, 8.0, 0.0}, {35.0, 7.0, 1.0}}) {
    small.nnz.add(step, nnz);
    small.dropped.add(step, dropped);
    small.grown.add(step, 0.0);
  }
  EXPECT_EQ(result_of(run).best_step, 30.0);
}

// As the trainer does.
TEST(RunTable, JudgesAndRanksSeveralLabelsByTheirPrecision) {
  RunData precise = run_with("precise", {}, {3.0, 4.0, 5.0}, "data: {type: labelled_sparse}");
  RunData likely = run_with("likely", {}, {1.0, 1.5, 2.0}, "data: {type: labelled_sparse}");
  for (const auto& [step, a, b] :
       {std::tuple{10.0, 0.5, 0.25}, {20.0, 0.875, 0.25}, {30.0, 0.75, 0.375}}) {
    precise.splits["test"]["precision_at_1"].add(step, a);
    likely.splits["test"]["precision_at_1"].add(step, b);
  }
  const RunResult result = result_of(precise);
  EXPECT_EQ(result.precision_at_1, 0.75);
  EXPECT_EQ(result.best_precision_at_1, 0.875);
  EXPECT_EQ(result.best_step, 20.0);
  EXPECT_EQ(result.task, "labelled_sparse, several labels");
  EXPECT_EQ(sorted_by_result({result_of(likely), result})[0].name, "precise");
  EXPECT_EQ(group_runs({likely, precise}, {"likely", "precise"})[0].name, "precise");
  EXPECT_EQ(heading(readable_table({result})),
            "run; state; result of; precision at 1; loss; best precision at 1; loss at best; best "
            "step; steps; ");
  EXPECT_EQ(to_json({result}).items()[0].at("best_precision_at_1").as<double>(), 0.875);
  const std::string groups = readable_table(group_runs({precise, precise}, {"a", "a"})).text();
  EXPECT_NE(groups.find("75.00 % ± 0.00 %"), std::string::npos) << groups;
}

TEST(RunTable, JudgesRegressionByItsLoss) {
  const RunResult result = result_of(run_with("a", {}, {2.0, 1.0, 1.5}));
  EXPECT_TRUE(std::isnan(result.accuracy));
  EXPECT_EQ(result.best_step, 20.0);
  EXPECT_EQ(readable_table({result}).text().find("accuracy"), std::string::npos);
}

// The metric that a task has: accuracy of classes, R² of regression.
TEST(RunTable, ShowsTheMetricOfTheTask) {
  const RunResult classes = result_of(run_with("classes", {0.75, 0.5}, {2.0, 1.0}));
  RunData run = run_with("numbers", {}, {2.0, 1.0, 1.5});
  for (const auto& [step, r2] : {std::pair{10.0, -0.5}, {20.0, 0.875}, {30.0, 0.75}}) {
    run.splits["test"]["r2"].add(step, r2);
  }
  const RunResult numbers = result_of(run);
  EXPECT_EQ(numbers.r2, 0.75);
  EXPECT_EQ(numbers.best_r2, 0.875);
  EXPECT_EQ(heading(readable_table({classes})),
            "run; state; result of; accuracy; loss; best accuracy; loss at best; best step; "
            "steps; ");
  EXPECT_EQ(heading(readable_table({numbers})),
            "run; state; result of; R²; loss; best R²; loss at best; best step; steps; ");
  EXPECT_NE(readable_table({numbers}).text().find("test       0.7500   1.5   0.8750"),
            std::string::npos)
      << readable_table({numbers}).text();
  EXPECT_EQ(to_json({numbers}).items()[0].at("best_r2").as<double>(), 0.875);
  EXPECT_TRUE(to_json({classes}).items()[0].get("r2").is_null());
  const std::string groups = readable_table(group_runs({run, run}, {"a", "a"})).text();
  EXPECT_NE(groups.find("0.7500 ± 0.0000"), std::string::npos) << groups;
}

// In the unit of the targets.
TEST(RunTable, ShowsTheErrorsOfRegression) {
  RunData run = run_with("numbers", {}, {2.0, 1.0, 1.5});
  for (const auto& [step, rmse] : {std::pair{10.0, 30000.0}, {20.0, 12345.6}, {30.0, 16807.4}}) {
    run.splits["test"]["rmse"].add(step, rmse);
    run.splits["test"]["mae"].add(step, rmse / 2);
  }
  const RunResult result = result_of(run);
  EXPECT_EQ(result.rmse, 16807.4);
  EXPECT_EQ(result.best_rmse, 12345.6);
  EXPECT_EQ(heading(readable_table({result})),
            "run; state; result of; MAE; RMSE; loss; loss at best; best step; steps; ");
  EXPECT_NE(readable_table({result}).text().find("test       8404  16,807   1.5             1 "),
            std::string::npos)
      << readable_table({result}).text();
  EXPECT_EQ(to_json({result}).items()[0].at("best_mae").as<double>(), 6172.8);
  const std::string groups = readable_table(group_runs({run, run}, {"a", "a"})).text();
  EXPECT_NE(groups.find("16,807 ± 0"), std::string::npos) << groups;
}

// R² is unknown where all targets are the same: what an earlier evaluation had is not the last.
TEST(RunTable, TakesNoR2OfAnotherEvaluation) {
  RunData run = run_with("a", {}, {2.0, 1.0});
  run.splits["test"]["r2"].add(10.0, 0.5);
  EXPECT_TRUE(std::isnan(result_of(run).r2));
}

// A folder may be called anything; a row stays one line.
TEST(RunTable, KeepsARowInALine) {
  const TextTable table{.columns = {"run", "n"}, .rows = {{"a\nb\tc", "1"}}};
  EXPECT_EQ(table.text(), "run    n\na b c  1\n");
}

TEST(RunTable, PutsTheBestFirstAndRunsWithoutAResultLast) {
  std::vector<RunResult> results;
  results.push_back(result_of(run_with("empty", {}, {})));
  results.push_back(result_of(run_with("loss 2", {}, {2.0})));
  results.push_back(result_of(run_with("loss 1", {}, {1.0})));
  results.push_back(result_of(run_with("50 %", {0.5}, {9.0})));
  results.push_back(result_of(run_with("90 %", {0.9}, {9.5})));
  std::string order;
  for (const RunResult& result : sorted_by_result(results)) order += result.name + "; ";
  EXPECT_EQ(order, "90 %; 50 %; loss 1; loss 2; empty; ");
}

// Of the same characters, whatever the tokens; where these are not known, by the loss.
TEST(RunTable, RanksLanguageModelsByTheirBits) {
  const auto language = [](const std::string& name, double accuracy, double loss, double bits) {
    RunData run = run_with(name, {accuracy}, {loss});
    run.splits["test"]["perplexity"].add(10.0, std::exp(loss));
    if (bits > 0.0) run.splits["test"]["bits_per_character"].add(10.0, bits);
    return result_of(run);
  };
  const auto order = [](const std::vector<RunResult>& results) {
    std::string names;
    for (const RunResult& result : sorted_by_result(results)) names += result.name + "; ";
    return names;
  };
  const RunResult words = language("words", 0.2, 4.0, 1.5),
                  bytes = language("bytes", 0.6, 1.2, 1.8);
  EXPECT_EQ(order({bytes, words}), "words; bytes; ");
  EXPECT_EQ(order({words, bytes, language("ids", 0.9, 2.0, 0.0)}), "bytes; ids; words; ");
  // Before the first evaluation there is neither of both, and a loss.
  std::vector<RunResult> trained;
  for (const auto& [name, accuracy, loss] : {std::tuple{"worse", 0.5, 3.0}, {"better", 0.4, 2.0}}) {
    RunData run = run_with(name, {}, {}, "data: {type: text}");
    run.splits["train"]["loss"].add(10.0, loss);
    run.splits["train"]["accuracy"].add(10.0, accuracy);
    trained.push_back(result_of(run));
  }
  EXPECT_EQ(order(trained), "better; worse; ");
  EXPECT_EQ(words.bits_per_character, 1.5);
  EXPECT_NE(readable_table({words}).text().find("bits/character"), std::string::npos);
  EXPECT_EQ(to_json({words}).items()[0].at("best_bits_per_character").as<double>(), 1.5);
}

// An accuracy on digits and one on sentences are no ranking, and neither are the errors of a
// regression.
TEST(RunTable, RanksRunsOfDifferentTasksApart) {
  std::vector<RunResult> results;
  for (const auto& [name, accuracy, data] :
       {std::tuple{"mnist 90", 0.9, "{type: mnist, dir: /a}"},
        {"cifar 50", 0.5, "{type: cifar10, dir: /a}"},
        {"mnist 95", 0.95, "{type: mnist, dir: /elsewhere/b}"},
        {"table", 0.7, "{type: csv, train: /a/wine.csv}"},
        {"same table", 0.8, "{type: csv, train: /b/wine.csv}"},
        {"other table", 0.9, "{type: csv, train: /a/cars/train.csv}"}}) {
    results.push_back(result_of(run_with(name, {accuracy}, {1.0}, std::string("data: ") + data)));
  }
  results.push_back(result_of(run_with("waits", {}, {}, "data: {type: cifar10}")));
  std::string text;
  for (const TaskResults& task : ranked_by_task(results)) {
    text += task.task + ":";
    for (const RunResult& result : task.results) text += " " + result.name + ";";
    text += "\n";
  }
  EXPECT_EQ(text,
            "mnist, classification: mnist 95; mnist 90;\n"
            "cifar10, classification: cifar 50; waits;\n"
            "csv wine.csv, classification: same table; table;\n"
            "csv cars/train.csv, classification: other table;\n");
}

TEST(RunTable, IsWrittenAsCsvAndJson) {
  const std::vector<RunResult> results = {result_of(run_with("a,\"b\"", {0.5}, {0.25}))};
  const std::string csv = exact_table(results).csv();
  EXPECT_EQ(csv.substr(0, csv.find("\r\n")),
            "run,folder,state,split,step,accuracy,loss,best_accuracy,best_loss,best_step,density,"
            "nnz,parameter_bytes,train_seconds,seed,r2,best_r2,mae,best_mae,rmse,best_rmse,"
            "perplexity,best_perplexity,bits_per_character,best_bits_per_character,"
            "examples_per_second,precision_at_1,best_precision_at_1,task");
  EXPECT_NE(csv.find("\"a,\"\"b\"\"\",\"a,\"\"b\"\"\",finished,test,10,0.5,0.25,"),
            std::string::npos)
      << csv;
  const Config row = to_json(results).items()[0];
  EXPECT_EQ(row.at("accuracy").as<double>(), 0.5);
  EXPECT_TRUE(row.get("nnz").is_null());
}

TEST(GroupRuns, TakesTheBestOfRunsThatStopEarly) {
  std::vector<RunData> runs = {run_with("a", {0.75, 0.5}, {1.0, 2.0})};
  EXPECT_EQ(group_runs(runs, {"a"})[0].mean_accuracy, 0.5);
  runs[0].config = parse_yaml("train: {early_stopping: {patience: 3}}", "a");
  EXPECT_EQ(group_runs(runs, {"a"})[0].mean_accuracy, 0.75);
  EXPECT_EQ(group_runs(runs, {"a"})[0].mean_loss, 1.0);
}

TEST(GroupRuns, GivesMeanAndSpread) {
  const std::vector<RunData> runs = {run_with("a0", {0.5}, {1.0}), run_with("b0", {0.9}, {1.0}),
                                     run_with("a1", {0.7}, {1.0})};
  const std::vector<SeedGroup> groups = group_runs(runs, {"a", "b", "a"});
  ASSERT_EQ(groups.size(), 2u);
  EXPECT_EQ(groups[0].name, "b");
  EXPECT_TRUE(std::isnan(groups[0].spread_accuracy));
  EXPECT_NEAR(groups[1].mean_accuracy, 0.6, 1e-12);
  EXPECT_NEAR(groups[1].spread_accuracy, std::sqrt(0.02), 1e-12);  // over n − 1
  EXPECT_NE(readable_table(groups).text().find("60.00 % ± 14.14 %"), std::string::npos);
}

}  // namespace
}  // namespace lacuna::run_table_test
