// Using a trained model: eval and inspect; and list and info.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <sstream>
#include <string>
#include <vector>

#include "framework/program/data/trained_table.h"
#include "lacuna/framework/core/version.h"

namespace lacuna::use_test {
namespace {

using testing::AllOf;
using testing::HasSubstr;

TEST_F(Use, EvalGivesTheAccuracyOfTheSummary) {
  ASSERT_EQ(train({"--set", "sparsity=0.5"}).code, 0);
  const Ended ended = run_lacuna({"eval", run_dir(), "--json"});
  EXPECT_EQ(ended.code, 0);
  EXPECT_EQ(ended.err, "");
  const Config report = parse_yaml(ended.out, "out");
  EXPECT_EQ(report.required<std::string>("checkpoint"), checkpoint(18));
  EXPECT_EQ(report.required<int>("step"), 18);
  const std::vector<Config> splits = report.at("splits").items();
  ASSERT_EQ(splits.size(), 2u);
  EXPECT_EQ(splits[0].at("split").text(), "validation");
  EXPECT_EQ(splits[0].required<int>("examples"), 10);
  EXPECT_EQ(splits[1].at("split").text(), "test");
  EXPECT_EQ(splits[1].at("accuracy").text(), summary(run_dir()).at("test_accuracy").text());
  EXPECT_EQ(splits[1].at("loss").text(), summary(run_dir()).at("test_loss").text());

  EXPECT_EQ(splits[1].at("top5_accuracy").text(),
            summary(run_dir()).at("test_top5_accuracy").text());
  EXPECT_GE(splits[1].required<double>("top5_accuracy"), splits[1].required<double>("accuracy"));
  const std::vector<Config> rows = splits[1].at("confusion_matrix").items();
  ASSERT_EQ(rows.size(), 10u);
  int64_t all = 0, right = 0;
  for (size_t label = 0; label < rows.size(); ++label) {
    const std::vector<Config> row = rows[label].items();
    ASSERT_EQ(row.size(), 10u);
    for (const Config& count : row) all += count.as<int64_t>();
    right += row[label].as<int64_t>();
  }
  EXPECT_EQ(all, 30);
  EXPECT_NEAR(static_cast<double>(right) / 30.0, splits[1].required<double>("accuracy"), 1e-12);

  const Ended plain = run_lacuna({"eval", checkpoint(16)});
  EXPECT_THAT(plain.out, HasSubstr("%  top-5 "));
  EXPECT_THAT(plain.out, AllOf(HasSubstr("validation loss "), HasSubstr("\ntest       loss "),
                               HasSubstr("(30 examples, step 16)")));
}

TEST_F(Use, EvalTakesOtherDataButNotAnotherModel) {
  train_table();
  write_text(folder_ / "new.csv", Table(3).with_labels);
  // The training file is replaced by one line: the normalization is that of the training.
  write_text(folder_ / "train.csv", "x,y,label\n1,2,2\n");
  const Ended ended =
      run_lacuna({"eval", run_dir(), "--set", "data.test=" + (folder_ / "new.csv"), "--json"});
  EXPECT_EQ(ended.code, 0) << ended.err;
  EXPECT_GT(parse_yaml(ended.out, "out").at("splits").items()[0].required<double>("accuracy"), 0.8);

  const auto refused = [&](const std::string& setting, const std::string& message) {
    const Ended bad = run_lacuna({"eval", run_dir(), "--set", setting});
    EXPECT_EQ(bad.code, 2) << setting;
    EXPECT_THAT(bad.err, HasSubstr(message));
  };
  refused("model.0.out_features=4",
          "--set model.0.out_features=4: eval takes the checkpoint's model; only data, loss and "
          "train may be changed");
  refused("model.sparse_gradient=true", "eval takes the checkpoint's model");
  refused("data.tset=x", "unknown key 'tset'; did you mean 'test'?");
  const Ended missing = run_lacuna({"eval", run_dir(), "--set", "data.test=missing.csv"});
  EXPECT_EQ(missing.code, 1);
  EXPECT_THAT(missing.err, HasSubstr("missing.csv"));
}

TEST_F(Use, EvalRefusesDataThatDoesNotFit) {
  train_table();
  const auto refused = [&](const std::string& settings, int code, const std::string& message) {
    const Ended ended = run_lacuna({"eval", run_dir(), "--set", settings});
    EXPECT_EQ(ended.code, code) << settings;
    EXPECT_THAT(ended.err, HasSubstr(message));
  };
  refused("data={type: csv, train: " + (folder_ / "train.csv") + "}", 1,
          "the data has neither a test nor a validation split to evaluate on");
  refused("data={type: glyphs, train_size: 10, test_size: 10}", 1,
          "the data has examples of shape [28, 28], and the model was trained on [2]");
  refused("data.task=regression", 2, "cross_entropy needs data with classes");
  write_text(folder_ / "test.csv", "x,y,label\n500,-7,3\n");
  refused("data.num_classes=4", 1, "label 3");
}

// The run judges the averages, and so do eval and predict, unless told otherwise.
TEST_F(Use, EvaluatesTheAverageOfTheWeights) {
  ASSERT_EQ(train({"--set", "train.ema=0.9", "--set", "sparsity=0.5"}).code, 0);
  const auto test_loss = [&](const std::vector<std::string>& more) {
    std::vector<std::string> arguments{"eval", run_dir(), "--json"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    const Ended ended = run_lacuna(arguments);
    EXPECT_EQ(ended.code, 0) << ended.err;
    return parse_yaml(ended.out, "out").at("splits").items()[1].at("loss").text();
  };
  EXPECT_EQ(test_loss({}), summary(run_dir()).at("test_loss").text());
  EXPECT_NE(test_loss({"--set", "train.ema=null"}), test_loss({}));
  const Ended other = run_lacuna({"eval", run_dir(), "--set", "train.ema=0.5"});
  EXPECT_EQ(other.code, 2);
  EXPECT_THAT(other.err, HasSubstr("--set train.ema=0.5: the average comes from the checkpoint and "
                                   "cannot be changed; train.ema=null evaluates the weights"));
  const Ended idle = run_lacuna({"eval", run_dir(), "--set", "train.epochs=5"});
  EXPECT_EQ(idle.code, 0);
  EXPECT_THAT(idle.err,
              HasSubstr("warning: --set train.epochs=5 changes nothing in an evaluation"));
  const StateDict state = read_checkpoint(checkpoint(18)).state;
  EXPECT_TRUE(state.contains("ema/fc1.bias"));
  EXPECT_NE(state.get<Tensor>("ema/fc1.bias").to_vector(),
            state.get<Tensor>("model/fc1.bias").to_vector());
  // Training is the same as without it.
  ASSERT_EQ(train({"--set", "sparsity=0.5"}, "plain").code, 0);
  const StateDict plain = read_checkpoint(checkpoint(18, "plain")).state;
  for (const auto& [name, value] : plain.values()) {
    if (!name.starts_with("model/") && !name.starts_with("optimizer/")) continue;
    EXPECT_TRUE(is_identical(value, state.values().at(name))) << name;
  }
}

TEST_F(Use, InspectShowsEveryParameter) {
  ASSERT_EQ(
      train({"--set", "sparsity={sparsity: 0.75, param_filter: fc1.weight, layout: masked}"}).code,
      0);
  const Ended ended = run_lacuna({"inspect", run_dir(), "--json"});
  EXPECT_EQ(ended.code, 0);
  const Config report = parse_yaml(ended.out, "out");
  EXPECT_EQ(report.required<int>("step"), 18);
  EXPECT_EQ(report.required<int>("format_version"), 2);
  EXPECT_EQ(report.at("algorithm").text(), "static");
  EXPECT_EQ(report.at("optimizer").text(), "adam");
  EXPECT_EQ(report.required<int>("numel"), 9550);
  const int nnz = 784 * 12 / 4;
  EXPECT_EQ(report.required<int>("nnz"), nnz + 12 + 120 + 10);
  const std::vector<Config> parameters = report.at("parameters").items();
  ASSERT_EQ(parameters.size(), 4u);
  const Config fc1 = parameters[1];
  EXPECT_EQ(fc1.at("name").text(), "fc1.weight");
  EXPECT_EQ(fc1.at("shape").as<std::vector<int64_t>>(), (std::vector<int64_t>{12, 784}));
  EXPECT_EQ(fc1.at("layout").text(), "masked");
  EXPECT_EQ(fc1.required<int>("nnz"), nnz);
  EXPECT_EQ(fc1.required<double>("density"), 0.25);
  EXPECT_EQ(fc1.required<int>("bytes"), 784 * 12 * 4 + 784 * 12 / 8);
  EXPECT_EQ(fc1.required<int>("value_bytes"), 784 * 12 * 4);
  EXPECT_EQ(fc1.required<int>("index_bytes"), 784 * 12 / 8);
  EXPECT_EQ(fc1.required<int>("state_bytes"), 784 * 12 * 8);
  EXPECT_EQ(fc1.required<int>("total_bytes"), 784 * 12 * 12 + 784 * 12 / 8);
  EXPECT_EQ(fc1.required<double>("bytes_per_nonzero"), 48.5);
  EXPECT_EQ(report.required<int>("total_bytes"), 9550 * 12 + 784 * 12 / 8);
  EXPECT_EQ(parameters[0].at("layout").text(), "dense");
  EXPECT_EQ(report.at("optimizer_states").items().size(), 8u);
  EXPECT_EQ(report.at("optimizer_states").items()[2].at("name").text(), "fc1.weight/exp_avg");

  const Ended plain = run_lacuna({"inspect", checkpoint(18)});
  EXPECT_THAT(plain.out, AllOf(HasSubstr(std::string("written by lacuna ") + kVersion +
                                         " at step 18; 9550 parameters, 2494 of them nonzeros"),
                               HasSubstr("fc1.weight            [12, 784]        masked"),
                               HasSubstr("fc2.bias/exp_avg_sq")));
}

TEST_F(Use, BytesOfACompressedParameterFollowItsNonzeros) {
  const Ended ended =
      train({"--set", "sparsity={sparsity: 0.75, param_filter: fc1.weight, layout: csr}"});
  ASSERT_EQ(ended.code, 0);
  const int nnz = 784 * 12 / 4;
  const Config report = parse_yaml(run_lacuna({"inspect", run_dir(), "--json"}).out, "out");
  const Config saved = report.at("parameters").items()[1];
  EXPECT_EQ(saved.at("layout").text(), "csr");
  EXPECT_EQ(saved.required<int>("nnz"), nnz);
  EXPECT_EQ(saved.required<int>("value_bytes"), nnz * 4);
  EXPECT_EQ(saved.required<int>("index_bytes"), nnz * 4 + 13 * 8);
  EXPECT_EQ(saved.required<int>("state_bytes"), nnz * 8);

  const Config end = summary(run_dir());
  const Config fc1 = end.at("parameters").items()[0], bytes = fc1.at("bytes");
  EXPECT_EQ(fc1.at("name").text(), "fc1.weight");
  EXPECT_EQ(fc1.at("layout").text(), "csr");
  EXPECT_EQ(fc1.required<int>("nnz"), nnz);
  EXPECT_EQ(bytes.required<int>("values"), nnz * 4);
  EXPECT_EQ(bytes.required<int>("gradient"), nnz * 4);
  EXPECT_EQ(bytes.required<int>("states"), nnz * 8);
  EXPECT_GT(bytes.required<int>("index"), nnz * 2);
  int total = 0;
  for (const char* part : {"values", "derived", "gradient", "states", "index"}) {
    total += bytes.required<int>(part);
  }
  EXPECT_EQ(bytes.required<int>("total"), total);
  EXPECT_NEAR(fc1.required<double>("bytes_per_nonzero"), static_cast<double>(total) / nnz, 1e-9);
  EXPECT_GT(end.required<int>("parameter_bytes"), total);
  EXPECT_THAT(read_text(run_dir() + "/log.txt"),
              AllOf(HasSubstr("fc1.weight csr, 2352 nonzeros, "),
                    HasSubstr("parameters, gradients and optimizer states take ")));
}

TEST_F(Use, ListNamesTheBuiltIns) {
  const std::vector<std::pair<std::string, std::vector<std::string>>> kinds = {
      {"algorithms", {"static", "gmp", "set", "rigl"}},
      {"layers",
       {"linear", "relu", "gelu", "silu", "sigmoid", "tanh", "layer_norm", "dropout", "flatten",
        "squared_relu", "semi_sparse_activation", "sequential"}},
      {"presets", {"bert", "cifar_resnet", "distilbert", "gpt2", "llama", "vit"}},
      {"optimizers", {"sgd", "adam", "adamw"}},
      {"schedules", {"constant", "linear", "cosine", "polynomial", "multi_step"}},
      {"datasets", {"mnist", "csv", "hdf5", "glyphs", "synthetic"}}};
  for (const auto& [kind, names] : kinds) {
    const Ended ended = run_lacuna({"list", kind});
    EXPECT_EQ(ended.code, 0);
    for (const std::string& name : names) {
      EXPECT_THAT("\n" + ended.out, HasSubstr("\n" + name + " ")) << kind;
    }
  }
  // Each built-in algorithm says when to use it.
  const std::string algorithms = run_lacuna({"list", "algorithms"}).out;
  const auto starts = std::ranges::count(algorithms, '\n');
  size_t uses = 0;
  for (size_t at = 0; (at = algorithms.find("\n             use it ", at)) != std::string::npos;
       ++at) {
    ++uses;
  }
  EXPECT_EQ(2 * uses, static_cast<size_t>(starts)) << algorithms;
  // scalar_threshold is longer than most names: what follows begins in one column all the same.
  std::istringstream sparsifiers(run_lacuna({"list", "sparsifiers"}).out);
  for (std::string line; std::getline(sparsifiers, line);) {
    ASSERT_GT(line.size(), 18u);
    EXPECT_EQ(line.substr(16, 2), "  ") << line;
    EXPECT_NE(line[18], ' ') << line;
  }
  const Ended wrong = run_lacuna({"list", "layer"});
  EXPECT_EQ(wrong.code, 2);
  EXPECT_EQ(wrong.err, "error: list: unknown 'layer'; did you mean 'layers'?\n");
}

TEST_F(Use, InfoTellsWhatThisIs) {
  const Ended ended = run_lacuna({"info", "--json"});
  EXPECT_EQ(ended.code, 0);
  const Config info = parse_yaml(ended.out, "out");
  EXPECT_EQ(info.at("version").text(), kVersion);
  EXPECT_EQ(info.required<int64_t>("arithmetic_revision"), kArithmeticRevision);
  EXPECT_GE(info.required<int>("threads"), 1);
  EXPECT_TRUE(info.has("instruction_set"));
  EXPECT_TRUE(info.has("dense_provider"));
  const auto compiled = info.required<std::vector<std::string>>("compiled_instruction_sets");
  EXPECT_THAT(compiled, testing::Contains(info.at("instruction_set").text()));
  const auto blocks = info.required<int64_t>("dense_blocks");
  EXPECT_TRUE(blocks >= 2 && blocks <= 32) << blocks;
  const Ended set =
      run_lacuna({"info", "--json"}, {.in_child = [] { ::setenv("LACUNA_DENSE_BLOCKS", "5", 1); }});
  EXPECT_EQ(parse_yaml(set.out, "out").required<int64_t>("dense_blocks"), 5);
  EXPECT_THAT(run_lacuna({"info"}).out, AllOf(HasSubstr(std::string("lacuna ") + kVersion + "\n"),
                                              HasSubstr("instruction set"),
                                              HasSubstr("\nkernels          " + compiled.front())));
}

TEST_F(Use, SaysWhenItsOutputCannotBeWritten) {
  const Ended ended = run_lacuna({"info"}, {.standard_out = "/dev/full"});
  EXPECT_EQ(ended.code, 1);
  EXPECT_EQ(ended.err, "error: cannot write to the standard output\n");
}

}  // namespace
}  // namespace lacuna::use_test
