// Using a trained model: eval, predict, inspect; and list and info.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <sstream>
#include <string>
#include <vector>

#include "framework/program/runs.h"
#include "lacuna/framework/core/random.h"
#include "lacuna/framework/core/version.h"

namespace lacuna {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

std::string number(double value) { return Config(value).text(); }

/// 60 examples of three classes: points around the corners of a triangle, far from the origin, so
/// that normalization matters. The label is in the last column.
struct Table {
  std::string with_labels = "x,y,label\n";
  std::string without_labels = "x,y\n";
  std::vector<int> labels;

  explicit Table(uint64_t seed) {
    const CounterRng rng(seed, "table");
    for (uint64_t i = 0; i < 60; ++i) {
      const int label = static_cast<int>(i % 3);
      const double angle = 2.0 * label;
      const std::string x = number(500 + 30 * std::cos(angle) + 10 * rng.uniform(2 * i));
      const std::string y = number(-7 + 0.3 * std::sin(angle) + 0.1 * rng.uniform(2 * i + 1));
      with_labels += x + "," + y + "," + std::to_string(label) + "\n";
      without_labels += x + "," + y + "\n";
      labels.push_back(label);
    }
  }
};

std::vector<std::vector<double>> read_rows(const std::string& path, std::string* header) {
  std::istringstream lines(read_text(path));
  std::getline(lines, *header);
  std::vector<std::vector<double>> rows;
  for (std::string line; std::getline(lines, line);) {
    rows.emplace_back();
    std::istringstream fields(line);
    for (std::string field; std::getline(fields, field, ',');) {
      rows.back().push_back(std::stod(field));
    }
  }
  return rows;
}

std::string idx_images(int count, int rows, int columns) {
  std::string bytes("\0\0\x08\x03", 4);
  for (const int size : {count, rows, columns}) {
    bytes += std::string("\0\0\0", 3) + static_cast<char>(size);
  }
  for (int i = 0; i < count * rows * columns; ++i) bytes += static_cast<char>(i * 37 % 256);
  return bytes;
}

class Use : public RunFixture {
 protected:
  void train_table(const std::string& normalize = "standard") {
    write_text(folder_ / "train.csv", Table(1).with_labels);
    write_text(folder_ / "test.csv", Table(2).with_labels);
    write_text(config(), "data: {type: csv, train: " + (folder_ / "train.csv") +
                             ", test: " + (folder_ / "test.csv") + ", normalize: " + normalize +
                             "}\n"
                             "model:\n  - {type: linear, out_features: 8}\n  - relu\n"
                             "  - {type: linear, out_features: 3}\n"
                             "optimizer: {type: adam, lr: 0.05}\n"
                             "train: {epochs: 8, batch_size: 10, threads: 1}\n");
    const Ended ended = train();
    ASSERT_EQ(ended.code, 0) << ended.err;
  }
  Ended predict(const std::string& input, const std::string& out = "out.csv") const {
    return run_lacuna({"predict", run_dir(), folder_ / input, "--out", folder_ / out});
  }
};

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

  const Ended plain = run_lacuna({"eval", checkpoint(16)});
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

TEST_F(Use, PredictsClassesThatAgreeWithEval) {
  train_table();
  const Table test(2);
  write_text(folder_ / "in.csv", test.without_labels);
  const Ended ended = predict("in.csv");
  ASSERT_EQ(ended.code, 0) << ended.err;
  EXPECT_EQ(ended.out, "60 predictions are in " + (folder_ / "out.csv") + "\n");
  std::string header;
  const auto rows = read_rows(folder_ / "out.csv", &header);
  EXPECT_EQ(header, "class,p0,p1,p2");
  ASSERT_EQ(rows.size(), 60u);
  int correct = 0;
  for (size_t i = 0; i < rows.size(); ++i) {
    ASSERT_EQ(rows[i].size(), 4u);
    EXPECT_NEAR(rows[i][1] + rows[i][2] + rows[i][3], 1.0, 1e-7);
    const auto best = std::max_element(rows[i].begin() + 1, rows[i].end());
    EXPECT_EQ(static_cast<int>(rows[i][0]), best - rows[i].begin() - 1);
    correct += static_cast<int>(rows[i][0]) == test.labels[i] ? 1 : 0;
  }
  EXPECT_NEAR(correct / 60.0, summary(run_dir()).required<double>("test_accuracy"), 1e-12);
  EXPECT_GT(correct, 48);
}

TEST_F(Use, PredictsFromImagesOfSeveralFiles) {
  ASSERT_EQ(train().code, 0);
  write_text(folder_ / "a.idx", idx_images(3, 28, 28));
  write_text(folder_ / "b.idx", idx_images(2, 28, 28));
  const Ended ended = run_lacuna({"predict", checkpoint(18), folder_ / "a.idx", folder_ / "b.idx",
                                  "--out", folder_ / "out.csv"});
  EXPECT_EQ(ended.code, 0) << ended.err;
  std::string header;
  const auto rows = read_rows(folder_ / "out.csv", &header);
  EXPECT_EQ(header, "class,p0,p1,p2,p3,p4,p5,p6,p7,p8,p9");
  ASSERT_EQ(rows.size(), 5u);
  // The first image of either file is the same; its probabilities are equal but for rounding. Each
  // file is a batch, of three and of two, and a product may add its terms in an order that hangs on
  // the batch, as oneDNN's does under AVX2: its sums of 784 terms differ by 1e-6 and the
  // probabilities by 6e-8, while those of another image differ by 0.03.
  const auto is_same_image = testing::Pointwise(testing::DoubleNear(1e-5), rows[3]);
  EXPECT_THAT(rows[0], is_same_image);
  EXPECT_THAT(rows[1], testing::Not(is_same_image));
}

TEST_F(Use, PredictsValuesOfARegression) {
  std::string table = "x,y\n", inputs = "x\n";
  for (int i = 0; i < 50; ++i) {
    table += number(i / 50.0) + "," + number(3.0 - i / 25.0) + "\n";
    inputs += number(i / 50.0) + "\n";
  }
  write_text(folder_ / "train.csv", table);
  write_text(folder_ / "in.csv", inputs);
  write_text(config(), "data: {type: csv, task: regression, train: " + (folder_ / "train.csv") +
                           ", test: " + (folder_ / "train.csv") +
                           "}\n"
                           "model: [{type: linear, out_features: 1}]\n"
                           "optimizer: {type: sgd, lr: 0.3, momentum: 0.9}\n"
                           "train: {epochs: 40, batch_size: 10}\n");
  const Ended trained = train();
  ASSERT_EQ(trained.code, 0) << trained.err;
  EXPECT_FALSE(summary(run_dir()).has("test_accuracy"));
  EXPECT_FALSE(events(run_dir()).front().has("accuracy"));
  EXPECT_LT(summary(run_dir()).required<double>("test_loss"), 1e-4);
  EXPECT_THAT(run_lacuna({"eval", run_dir()}).out, testing::Not(HasSubstr("accuracy")));
  ASSERT_EQ(predict("in.csv").code, 0);
  std::string header;
  const auto rows = read_rows(folder_ / "out.csv", &header);
  EXPECT_EQ(header, "y0");
  ASSERT_EQ(rows.size(), 50u);
  EXPECT_NEAR(rows[25][0], 2.0, 0.05);
}

TEST_F(Use, PredictRefusesInputsThatDoNotFitAndWritesNothing) {
  train_table();
  const auto refused = [&](const std::string& text, const std::string& message) {
    write_text(folder_ / "in.csv", text);
    const Ended ended = predict("in.csv");
    EXPECT_EQ(ended.code, 1);
    EXPECT_THAT(ended.err, HasSubstr(message));
    EXPECT_FALSE(std::filesystem::exists(folder_ / "out.csv"));
  };
  refused(Table(1).with_labels,
          "in.csv' has inputs of shape [3], and the model was trained on [2]; predict takes the "
          "inputs alone, without a label or target");
  refused("x,y\n1,a\n", "in.csv:2:3");
  refused("x,y\n", "no examples");
  EXPECT_THAT(predict("missing.csv").err, HasSubstr("missing.csv"));
  EXPECT_THAT(predict("config.yaml").err, HasSubstr("config.yaml"));
  EXPECT_EQ(predict("missing.csv").code, 1);
}

TEST_F(Use, PredictWritesAllOrNothing) {
  train_table();
  write_text(folder_ / "in.csv", Table(2).without_labels);
  const Ended nowhere = predict("in.csv", "no/such/out.csv");
  EXPECT_EQ(nowhere.code, 1);
  EXPECT_THAT(nowhere.err, AllOf(HasSubstr("cannot write '" + (folder_ / "no/such/out.csv")),
                                 HasSubstr("No such file or directory")));
  // Less than the output, more than the KiB of shared memory that clang's OpenMP begins with.
  const Ended full =
      run_lacuna({"predict", run_dir(), folder_ / "in.csv", "--out", folder_ / "out.csv"},
                 {.max_file_bytes = 1500});
  EXPECT_EQ(full.code, 1);
  EXPECT_THAT(full.err, HasSubstr("cannot write '" + (folder_ / "out.csv") + "': File too large"));
  EXPECT_THAT(listing(folder_.path()), Not(HasSubstr("out.csv")));
  write_text(folder_ / "out.csv", "of before");
  EXPECT_EQ(run_lacuna({"predict", run_dir(), folder_ / "in.csv", "--out", folder_ / "out.csv"},
                       {.max_file_bytes = 1500})
                .code,
            1);
  EXPECT_EQ(read_text(folder_ / "out.csv"), "of before");
  EXPECT_EQ(predict("in.csv",
                    "../" + std::filesystem::path(folder_.path()).filename().string() + "/out.csv")
                .code,
            0);
}

TEST_F(Use, PredictWritesToWhatIsNoFile) {
  train_table();
  write_text(folder_ / "in.csv", Table(2).without_labels);
  std::filesystem::create_symlink(folder_ / "target.csv", folder_ / "link.csv");
  EXPECT_EQ(predict("in.csv", "link.csv").code, 0);
  EXPECT_TRUE(std::filesystem::is_symlink(folder_ / "link.csv"));
  EXPECT_THAT(read_text(folder_ / "target.csv"), StartsWith("class,p0,p1,p2\n"));
  const Ended full = run_lacuna({"predict", run_dir(), folder_ / "in.csv", "--out", "/dev/full"});
  EXPECT_EQ(full.code, 1);
  EXPECT_THAT(full.err, HasSubstr("cannot write '/dev/full': No space left on device"));
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
  EXPECT_THAT(ended.err, AllOf(HasSubstr("fc1.weight csr, 2352 nonzeros, "),
                               HasSubstr("parameters, gradients and optimizer states take ")));
}

TEST_F(Use, ListNamesTheBuiltIns) {
  const std::vector<std::pair<std::string, std::vector<std::string>>> kinds = {
      {"algorithms", {"static", "gmp", "set", "rigl"}},
      {"layers",
       {"linear", "relu", "gelu", "silu", "sigmoid", "tanh", "layer_norm", "dropout", "flatten",
        "squared_relu", "semi_sparse_activation", "sequential"}},
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
  EXPECT_GE(info.required<int>("threads"), 1);
  EXPECT_TRUE(info.has("instruction_set"));
  EXPECT_TRUE(info.has("dense_provider"));
  EXPECT_THAT(run_lacuna({"info"}).out, AllOf(HasSubstr(std::string("lacuna ") + kVersion + "\n"),
                                              HasSubstr("instruction set")));
}

TEST_F(Use, SaysWhenItsOutputCannotBeWritten) {
  const Ended ended = run_lacuna({"info"}, {.standard_out = "/dev/full"});
  EXPECT_EQ(ended.code, 1);
  EXPECT_EQ(ended.err, "error: cannot write to the standard output\n");
}

}  // namespace
}  // namespace lacuna
