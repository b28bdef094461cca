// `lacuna prune`: a pruned run that other commands understand, and training goes on from.
#include <fmt/core.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <string>
#include <vector>

#include "framework/program/runs.h"
#include "lacuna/framework/io/storage/safetensors_file.hpp"
#include "lacuna/framework/param/saved_parameter.hpp"

namespace lacuna::prune_test {
namespace {

using testing::HasSubstr;

class Prune : public RunFixture {
 protected:
  Prune() {
    write_text(
        prune_config(),
        "sparsity: {algorithm: wanda, sparsity: 0.5, calibration: 40, param_filter: default}\n");
  }
  std::string prune_config() const { return folder_ / "prune.yaml"; }
  Ended prune(const std::string& from, const std::string& to,
              const std::vector<std::string>& more = {}) const {
    std::vector<std::string> arguments{"prune", from, prune_config(), "--run-dir", run_dir(to)};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return run_lacuna(arguments);
  }
  Config json(const std::string& name) const { return load_yaml(run_dir(name) + "/prune.json"); }
  /// The mask of a parameter in a run's newest checkpoint.
  ByteArray mask(const std::string& name, const std::string& parameter) const {
    const StateDict state = find_checkpoint(run_dir(name)).read().state.below("model");
    return mask_of(state, parameter);
  }
  static ByteArray mask_of(const StateDict& state, const std::string& name) {
    const SavedParameter saved(state, name);
    Parameter parameter(saved.shape(), Initializer::constant(0.0));
    parameter.use = WeightUse::Linear;
    saved.restore(parameter, saved.pattern());
    return parameter.mask();
  }
  /// Nothing is left of a command that failed.
  void expect_nothing(const std::string& name) const {
    for (const auto& entry : std::filesystem::directory_iterator(folder_.path())) {
      EXPECT_EQ(entry.path().filename().string().find(name), std::string::npos) << entry.path();
    }
  }
};

double fraction_kept(const ByteArray& mask) {
  double kept = 0.0;
  for (const uint8_t bit : mask.values) kept += bit;
  return kept / static_cast<double>(mask.values.size());
}

// As eval, predict and export do.
TEST_F(Prune, TakesTheBestWhereOneIsKept) {
  ASSERT_EQ(train({"--set", "optimizer={type: sgd, lr: 0.5}", "--set", "train.epochs=40", "--set",
                   "train.early_stopping={patience: 2}"})
                .code,
            0);
  const auto pruned = [&](const std::string& to, const std::vector<std::string>& more) {
    const Ended ended = prune(run_dir(), to, more);
    EXPECT_EQ(ended.code, 0) << ended.err;
    return json(to).required<std::string>("checkpoint");
  };
  EXPECT_EQ(pruned("of best", {}), run_dir() + "/checkpoints/best.h5");
  EXPECT_EQ(pruned("of last", {"--last"}), find_checkpoint(run_dir()).path());
}

TEST_F(Prune, TellsThatInputsAreNormalizedAnew) {
  const std::string data = "data: {type: glyphs, train_size: 60, test_size: 30, normalize: ";
  write_text(config(), data +
                           "standard}\nmodel: [flatten, {type: linear, out_features: 10}]\n"
                           "optimizer: {type: adam}\n"
                           "train: {steps: 4, batch_size: 10, threads: 1}\n");
  ASSERT_EQ(train().code, 0);
  const std::string section =
      "sparsity: {algorithm: magnitude, sparsity: 0.5, param_filter: default}\n";
  write_text(prune_config(), section + data + "standard}\n");
  const Ended anew = prune(run_dir(), "anew");
  EXPECT_EQ(anew.code, 0) << anew.err;
  EXPECT_THAT(anew.err, HasSubstr("prune.yaml:2:64: data.normalize: inputs are normalized with the "
                                  "statistics of these examples"));
  write_text(prune_config(), section + "data: {type: glyphs, train_size: 60, test_size: 30}\n");
  const Ended kept = prune(run_dir(), "kept");
  EXPECT_EQ(kept.code, 0) << kept.err;
  EXPECT_THAT(kept.err,
              testing::Not(HasSubstr("normalized with the statistics of these examples")));
}

TEST_F(Prune, MakesARunThatEveryCommandUnderstands) {
  ASSERT_EQ(train().code, 0);
  const Ended ended = prune(run_dir(), "pruned");
  ASSERT_EQ(ended.code, 0) << ended.err;
  EXPECT_THAT(ended.out, HasSubstr("fc1.weight"));
  const Config report = json("pruned");
  const std::vector<Config> rows = report.at("rows").items();
  ASSERT_EQ(rows.size(), 2u);
  EXPECT_EQ(rows[0].required<std::string>("parameter"), "fc1.weight");
  EXPECT_EQ(rows[0].required<std::string>("method"), "wanda");
  EXPECT_EQ(rows[0].required<double>("sparsity"), 0.5);
  EXPECT_GT(rows[0].required<double>("relative_error"), 0.0);

  // What eval says of both runs.
  for (const auto& [key, run] : {std::pair("before", "run"), std::pair("after", "pruned")}) {
    const Ended evaluated = run_lacuna({"eval", run_dir(run), "--json"});
    ASSERT_EQ(evaluated.code, 0) << evaluated.err;
    const Config test = parse_yaml(evaluated.out, "eval").at("splits").items().back();
    for (const char* metric : {"loss", "accuracy"}) {
      EXPECT_EQ(report.at(key).at(metric).text(), test.at(metric).text()) << key << metric;
    }
    EXPECT_EQ(report.at(key).at("splits").items().size(), 2u);
  }
  // What compare shows of both.
  const Ended compared = run_lacuna({"compare", run_dir("run"), run_dir("pruned"), "--json"});
  ASSERT_EQ(compared.code, 0) << compared.err;
  const std::vector<Config> runs = parse_yaml(compared.out, "compare").at("runs").items();
  ASSERT_EQ(runs.size(), 2u);
  const auto of_pruned = std::ranges::find_if(runs, [](const Config& run) {
    return run.at("run").text().find("pruned") != std::string::npos;
  });
  ASSERT_NE(of_pruned, runs.end());
  EXPECT_EQ(of_pruned->at("state").text(), "finished");
  EXPECT_DOUBLE_EQ(of_pruned->required<double>("accuracy"),
                   report.at("after").required<double>("accuracy"));
  EXPECT_DOUBLE_EQ(of_pruned->required<double>("nnz"), report.required<double>("nnz"));
  ASSERT_EQ(run_lacuna({"report", run_dir("pruned"), "--out", folder_ / "page.html"}).code, 0);
  EXPECT_THAT(read_text(folder_ / "page.html"), HasSubstr("wanda"));
  EXPECT_EQ(run_lacuna({"inspect", run_dir("pruned"), "--json"}).code, 0);
  EXPECT_THAT(run_lacuna({"inspect", run_dir("pruned")}).out, HasSubstr("wanda"));
  EXPECT_EQ(fraction_kept(mask("pruned", "fc1.weight")), 0.5);
  EXPECT_THAT(read_text(run_dir("pruned") + "/log.txt"), HasSubstr("relative error"));
  EXPECT_EQ(load_yaml(run_dir("pruned") + "/config.yaml").at("sparsity").at("algorithm").text(),
            "wanda");
}

TEST_F(Prune, PrintsItsReportAsJson) {
  ASSERT_EQ(train().code, 0);
  const Ended ended = prune(run_dir(), "pruned", {"--json", "--set", "sparsity.algorithm=admm"});
  ASSERT_EQ(ended.code, 0) << ended.err;
  EXPECT_EQ(ended.out, read_text(run_dir("pruned") + "/prune.json"));
  EXPECT_THAT(ended.out, HasSubstr("\"admm\""));
}

// A layer that gives zeros only, and others once it is pruned, lost infinitely much.
TEST_F(Prune, TellsOfAnErrorThatIsInfinite) {
  std::string table = "a,b,y\n";
  for (int i = 1; i <= 20; ++i) table += fmt::format("{0},{0},{0}\n", i);
  write_text(folder_ / "equal.csv", table);
  write_safetensors_arrays(folder_ / "w.safetensors",
                           {{"fc1.weight", Tensor::from({1, 2}, std::vector<float>{1.0f, -1.0f})}});
  write_text(prune_config(), "data: {type: csv, train: " + folder_ / "equal.csv" +
                                 ", test: " + folder_ / "equal.csv" + R"(, task: regression}
model: [{type: linear, name: fc1, out_features: 1, bias: false}]
optimizer: {type: sgd, lr: 0.1}
loss: mse
train: {epochs: 1}
sparsity: {algorithm: magnitude, sparsity: 0.5, param_filter: default}
)");
  const Ended ended = prune(folder_ / "w.safetensors", "pruned");
  ASSERT_EQ(ended.code, 0) << ended.err;
  EXPECT_THAT(ended.out, testing::ContainsRegex("fc1.weight +magnitude +0.5000 +inf\n"));
  EXPECT_TRUE(json("pruned").at("rows").items()[0].get("relative_error").is_null());
}

TEST_F(Prune, PrunesItsOwnResultFurther) {
  ASSERT_EQ(train().code, 0);
  ASSERT_EQ(prune(run_dir(), "half").code, 0);
  const Ended ended =
      prune(run_dir("half"), "fifth",
            {"--set", "sparsity.sparsity=0.8", "--set", "sparsity.algorithm=sparsegpt"});
  ASSERT_EQ(ended.code, 0) << ended.err;
  for (const char* name : {"fc1.weight", "fc2.weight"}) {
    const ByteArray half = mask("half", name), fifth = mask("fifth", name);
    EXPECT_NEAR(fraction_kept(fifth), 0.2, 0.01);  // counts are rounded down
    for (size_t i = 0; i < half.values.size(); ++i) ASSERT_LE(fifth.values[i], half.values[i]);
  }
  const Ended back = prune(run_dir("fifth"), "back");
  EXPECT_EQ(back.code, 2);
  EXPECT_THAT(back.err, HasSubstr("pruned weights stay pruned"));
  expect_nothing("back");
}

TEST_F(Prune, TrainingGoesOnWithItsMasks) {
  ASSERT_EQ(train().code, 0);
  ASSERT_EQ(prune(run_dir(), "pruned").code, 0);
  const ByteArray pruned = mask("pruned", "fc1.weight");
  // A run of its own, from its weights and masks.
  const Ended tuned =
      train({"--set",
             "model={layers: [flatten, {type: linear, name: fc1, out_features: 12}, relu, "
             "{type: linear, name: fc2, out_features: 10}], init_from: " +
                 run_dir("pruned") + "}",
             "--set", "sparsity={algorithm: static, init_method: inherit}"},
            "tuned");
  ASSERT_EQ(tuned.code, 0) << tuned.err;
  EXPECT_EQ(mask("tuned", "fc1.weight"), pruned);
  // The run itself, trained for the first time.
  const Ended resumed = train({"--resume"}, "pruned");
  ASSERT_EQ(resumed.code, 0) << resumed.err;
  EXPECT_EQ(mask("pruned", "fc1.weight"), pruned);
  EXPECT_GT(summary(run_dir("pruned")).required<int64_t>("steps"), 0);
}

TEST_F(Prune, MasksToInheritMustBeThere) {
  const Ended ended = train({"--set", "sparsity={algorithm: static, init_method: inherit}"});
  EXPECT_EQ(ended.code, 2);
  EXPECT_THAT(ended.err, HasSubstr("and these are dense"));
}

TEST_F(Prune, TakesAListOfMethodsAndPatterns) {
  ASSERT_EQ(train().code, 0);
  write_text(prune_config(), R"(
sparsity:
  - {algorithm: sparsegpt, param_filter: fc1.weight, pattern: {type: nm, n: 2, m: 4}, damping: 0.1}
  - {algorithm: magnitude, param_filter: [fc2.weight], sparsity: 0.3, granularity: row}
)");
  const Ended ended = prune(run_dir(), "pruned");
  ASSERT_EQ(ended.code, 0) << ended.err;
  const std::vector<Config> rows = json("pruned").at("rows").items();
  EXPECT_EQ(rows[0].required<double>("sparsity"), 0.5);
  EXPECT_EQ(rows[1].required<std::string>("method"), "magnitude");
}

TEST_F(Prune, RefusesWhatItCannotUseAndWritesNothing) {
  ASSERT_EQ(train().code, 0);
  const auto refuse = [&](const std::string& config, const std::string& words, int code = 2) {
    write_text(prune_config(), config);
    const Ended ended = prune(run_dir(), "pruned");
    EXPECT_EQ(ended.code, code) << config << ended.err;
    EXPECT_THAT(ended.err, HasSubstr(words)) << config;
    expect_nothing("pruned");
  };
  refuse("data: {type: glyphs}\n", "there is no `sparsity` section");
  refuse("- wanda\n", "a map with `sparsity`");
  refuse("sparsity: 0.5\n", "found 'static'");
  refuse("sparsity: {algorithm: rigl, sparsity: 0.5, update: {freq: 2}}\n", "found 'rigl'");
  refuse("sparsity: {phases: [{algorithm: wanda, sparsity: 0.5}]}\n", "found 'phases'");
  refuse("sparsity: {algorithm: wanda}\n", "needs `sparsity`");
  refuse("sparsity: {algorithm: wanda, sparsity: 1.0}\n", "sparsity");
  refuse("sparsity: {algorithm: wanda, sparsity: 0.5, calibration: 100}\n",
         ":1:58: sparsity.calibration.examples: calibration needs 100 examples, and the training "
         "data has 90; give at most that many");
  refuse(
      "sparsity:\n"
      "  - {algorithm: wanda, sparsity: 0.5, param_filter: fc1.weight}\n"
      "  - {algorithm: admm, sparsity: 0.5, param_filter: fc2.weight,\n"
      "     calibration: {batches: 3, batch_size: 40}}\n",
      ":4:29: sparsity.1.calibration.batches: calibration needs 120 examples");
  refuse("sparsity: {algorithm: wanda, sparsity: 0.5, calibration: {example: 5}}\n", "example");
  refuse("sparsity: {algorithm: wanda, sparsity: 0.5, damping: 0.1}\n", "damping");
  refuse("sparsity: {algorithm: wanda, sparsity: 0.5, granularity: column}\n", "'layer' or 'row'");
  refuse("sparsity: {algorithm: sparsegpt, sparsity: 0.5, block: 0}\n", "block");
  refuse("sparsity: {algorithm: admm, sparsity: 0.5, rounds: 0}\n", "rounds");
  refuse("sparsity: {algorithm: admm, sparsity: 0.5, init_method: topk}\n",
         "takes no `init_method`");
  refuse("sparsity: {algorithm: wanda, sparsity: 0.5, param_filter: fc1.bias}\n",
         "does not fit 'fc1.bias'");
  refuse("sparsity: {algorithm: wanda, sparsity: 0.5}\nmodle: []\n", "unknown section 'modle'");
  refuse(
      "sparsity: {algorithm: wanda, sparsity: 0.5, param_filter: default}\n"
      "model: [flatten, {type: linear, name: fc1, out_features: 10}]\n",
      "fc2.weight", 1);
  refuse("sparsity: {algorithm: wanda, pattern: {type: nm, n: 2, m: 5}}\n", "5");
}

// Weights without a run are pruned where the configuration has all else, or become a run first.
TEST_F(Prune, OtherToolsFilesNeedAModelOrAnImport) {
  ASSERT_EQ(train().code, 0);
  for (const char* format : {"safetensors", "npz"}) {
    const std::string file = folder_ / (std::string("w.") + format);
    ASSERT_EQ(run_lacuna({"export", run_dir(), "--format", format, "--out", file}).code, 0);
    const Ended bare = prune(file, "pruned");
    EXPECT_EQ(bare.code, 2);
    EXPECT_THAT(bare.err, HasSubstr("error: prune " + file +
                                    ": it holds weights without the "
                                    "configuration of a run, so `model` must be given"));
    EXPECT_THAT(bare.err,
                HasSubstr("`lacuna import " + file + " --config CONFIG --out RUN`, and prune RUN"));
    expect_nothing("pruned");
    const std::string whole = folder_ / (std::string("whole_") + format + ".yaml");
    write_text(whole, read_text(config()) + read_text(prune_config()));
    const Ended ended =
        run_lacuna({"prune", file, whole, "--run-dir", run_dir(std::string("of_") + format)});
    EXPECT_EQ(ended.code, 0) << ended.err;
  }
  const std::string pickle = folder_.write("net.pth", "\x80\x02.");
  const Ended refused = prune(pickle, "pruned");
  EXPECT_EQ(refused.code, 1);
  EXPECT_THAT(refused.err, HasSubstr("torch.load('" + pickle + "'"));
  const Ended other = prune(prune_config(), "pruned");
  EXPECT_EQ(other.code, 1);
  EXPECT_THAT(other.err, HasSubstr("and `lacuna import` makes a run of them"));
}

// As a training configuration has one.
TEST_F(Prune, TellsThatAFolderInTheConfigurationIsNotUsed) {
  ASSERT_EQ(train().code, 0);
  write_text(prune_config(), "run_dir: " + run_dir("elsewhere") +
                                 "\nsparsity: {algorithm: magnitude, sparsity: 0.5}\n");
  const Ended ended = prune(run_dir(), "pruned");
  ASSERT_EQ(ended.code, 0) << ended.err;
  EXPECT_THAT(ended.err,
              HasSubstr("warning: " + prune_config() + ":1:10: run_dir: '" + run_dir("elsewhere") +
                        "' is not used; the folder of the new run is given by --run-dir, '" +
                        run_dir("pruned") + "'"));
  EXPECT_FALSE(std::filesystem::exists(run_dir("elsewhere")));
}

TEST_F(Prune, ErrorsNameThePlaceAtFault) {
  ASSERT_EQ(train().code, 0);
  const auto refuse = [&](const std::vector<std::string>& more, const std::string& words) {
    const Ended ended = prune(run_dir(), "pruned", more);
    EXPECT_NE(ended.code, 0);
    EXPECT_THAT(ended.err, HasSubstr("error: " + words));
    expect_nothing("pruned");
  };
  refuse({"--set", "sparsity="}, "--set sparsity=: this removes the `sparsity` section");
  refuse({"--set", "sparsity=0.5"}, "--set sparsity=0.5: sparsity: prune takes magnitude");
  refuse({"--set", "run_dir=other"},
         "--set run_dir=other: the folder of the new run is given by --run-dir, '" +
             run_dir("pruned") + "'");
  refuse({"--set", "sparsity.sparsity=1.5"}, "--set sparsity.sparsity=1.5: sparsity.sparsity: ");
  // The run's model is as good as it was: the data that was given is at fault.
  const std::string data =
      "data={type: synthetic, features: 8, classes: 10, train_size: 40, test_size: 20}";
  refuse({"--set", data},
         "--set " + data +
             ": data: with this instead of the run's value, the model does not fit: " +
             checkpoint(18) + ":");
  const std::string model =
      "model=[flatten, {type: linear, name: fc1, out_features: 13}, relu, {type: linear, name: "
      "fc2, out_features: 10}]";
  const Ended other = prune(run_dir(), "pruned", {"--set", model});
  EXPECT_THAT(other.err, HasSubstr("error: prune " + checkpoint(18) + ": "));
  EXPECT_THAT(other.err, HasSubstr("; the model is that of --set " + model + ": model"));
  write_text(prune_config(), R"(sparsity:
  - {algorithm: wanda, sparsity: 0.5, param_filter: fc1.weight}
  - {algorithm: rigl, sparsity: 0.5, param_filter: fc2.weight, update: {freq: 2}}
)");
  refuse({}, prune_config() + ":3:5: sparsity.1: prune takes magnitude");
}

TEST_F(Prune, SaysWhichWeightsAreFrozen) {
  ASSERT_EQ(train().code, 0);
  write_text(prune_config(),
             R"(sparsity: {algorithm: magnitude, sparsity: 0.5, param_filter: default}
model: {frozen: [fc1.*], layers: [flatten, {type: linear, name: fc1, out_features: 12}, relu,
                                  {type: linear, name: fc2, out_features: 10}]}
)");
  const Ended ended = prune(run_dir(), "pruned");
  ASSERT_EQ(ended.code, 0) << ended.err;
  const std::string words = "not pruned, because they are frozen: fc1.weight;";
  EXPECT_THAT(ended.err, HasSubstr(words));
  EXPECT_THAT(read_text(run_dir("pruned") + "/prune.json"), HasSubstr(words));
  EXPECT_EQ(json("pruned").at("rows").items().size(), 1u);
  const Ended resumed = run_lacuna({"train", "--resume", "--run-dir", run_dir("pruned")});
  EXPECT_EQ(resumed.code, 0) << resumed.err;
  EXPECT_THAT(resumed.out + resumed.err, HasSubstr("frozen    not made sparse: fc1.weight"));
}

TEST_F(Prune, TakesANumberOfThreads) {
  ASSERT_EQ(train().code, 0);
  ASSERT_EQ(prune(run_dir(), "pruned", {"--threads", "1"}).code, 0);
  const Config resolved = load_yaml(run_dir("pruned") + "/config.yaml");
  EXPECT_EQ(resolved.at("train").at("threads").text(), "1");
  EXPECT_EQ(resolved.at("sparsity").at("calibration").required<int>("examples"), 40);
  const Ended ended = prune(run_dir(), "other", {"--threads", "many"});
  EXPECT_EQ(ended.code, 2);
  EXPECT_THAT(ended.err, HasSubstr("--set train.threads=many: train.threads: expected an integer"));
}

TEST_F(Prune, AssignmentsChangeAPartOfTheRunsSections) {
  ASSERT_EQ(train({"--set", "data.normalize=standard"}).code, 0);
  const Ended ended = prune(run_dir(), "pruned", {"--set", "data.test_size=20"});
  ASSERT_EQ(ended.code, 0) << ended.err;
  const Config before = load_yaml(run_dir() + "/config.yaml").at("data");
  const Config after = load_yaml(run_dir("pruned") + "/config.yaml").at("data");
  EXPECT_EQ(after.required<int64_t>("test_size"), 20);
  EXPECT_EQ(after.required<int64_t>("train_size"), before.required<int64_t>("train_size"));
  EXPECT_TRUE(after.at("normalize").is_map());  // what was measured of the run's own data
}

TEST_F(Prune, RefusesAFolderThatIsInUse) {
  ASSERT_EQ(train().code, 0);
  const Ended ended = prune(run_dir(), "run");
  EXPECT_EQ(ended.code, 1);
  EXPECT_THAT(ended.err, HasSubstr("holds a run already"));
  EXPECT_EQ(prune(folder_ / "nowhere", "pruned").code, 1);
  expect_nothing("pruned");
}

}  // namespace
}  // namespace lacuna::prune_test
