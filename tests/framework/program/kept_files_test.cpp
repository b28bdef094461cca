// Files of runs are not overwritten by what other commands write, and only train is for several
// processes.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "framework/program/data/trained_table.h"

namespace lacuna::kept_files_test {
namespace {

using testing::HasSubstr;

TEST_F(Use, FilesOfARunAreNoOutputs) {
  train_table();
  write_text(folder_ / "in.csv", Table(2).without_labels);
  const std::string newest = find_checkpoint(run_dir()).path();
  const auto refused = [&](const std::vector<std::string>& command, const std::string& file) {
    const std::string before = read_text(file);
    std::vector<std::string> all = command;
    all.insert(all.end(), {"--out", file});
    const Ended ended = run_lacuna(all);
    EXPECT_EQ(ended.code, 2) << file;
    EXPECT_THAT(ended.err,
                testing::ContainsRegex(
                    "is (among the files of the run|the input file .*, and would be overwritten)"));
    EXPECT_EQ(read_text(file), before);
  };
  for (const std::string& file : {run_dir() + "/config.yaml", run_dir() + "/summary.json",
                                  run_dir() + "/checkpoints/../metrics.jsonl", newest}) {
    refused({"predict", run_dir(), folder_ / "in.csv"}, file);
    refused({"export", run_dir(), "--format", "npz", "--overwrite"}, file);
  }
  ASSERT_EQ(train({}, "other").code, 0);
  refused({"report", run_dir()}, run_dir("other") + "/summary.json");
  EXPECT_EQ(predict("in.csv", "run/predictions.csv").code, 0);
}

TEST_F(Use, EvalRefusesNumbersForNames) {
  std::string names = "x,y,kind\n", numbers = names;
  for (int i = 0; i < 40; ++i) {
    const std::string inputs = std::to_string(i % 7) + "." + std::to_string(i % 3) + ",1,";
    names += inputs + (i % 2 == 0 ? "cat\n" : "dog\n");
    numbers += inputs + (i % 2 == 0 ? "1\n" : "0\n");
  }
  write_text(folder_ / "names.csv", names);
  write_text(folder_ / "numbers.csv", numbers);
  write_text(folder_ / "headless.csv", names.substr(names.find('\n') + 1));
  write_text(config(),
             "data: {type: csv, train: " + (folder_ / "names.csv") +
                 ", validation: 0.25}\nmodel: [{type: linear, out_features: 2}]\n"
                 "optimizer: {type: adam}\ntrain: {steps: 4, batch_size: 8, threads: 1}\n");
  ASSERT_EQ(train().code, 0);
  write_text(folder_ / "prune.yaml",
             "sparsity: {algorithm: magnitude, sparsity: 0.5, param_filter: default}\n");
  const std::string other = "data.train=" + (folder_ / "numbers.csv");
  for (const std::vector<std::string>& command :
       {std::vector<std::string>{"eval", run_dir(), "--set", other},
        {"prune", run_dir(), folder_ / "prune.yaml", "--run-dir", run_dir("pruned"), "--set",
         other}}) {
    const Ended ended = run_lacuna(command);
    EXPECT_EQ(ended.code, 1);
    EXPECT_THAT(ended.err, HasSubstr("the data's classes are numbers, and the model was trained on "
                                     "names: cat, dog"));
  }
  const Ended headless = train({"--set", "data.train=" + (folder_ / "headless.csv")}, "headless");
  EXPECT_THAT(headless.err,
              HasSubstr("headless.csv: the first line is read as the columns' names, but these are "
                        "numbers (0.0, 1); if it is an example, set data.header: false"));
}

// By its summary, and not by what the process that looks at it has in memory.
TEST_F(Use, AFinishedRunIsToldAsItWas) {
  const Ended first = train({"--set", "sparsity=0.5"});
  ASSERT_EQ(first.code, 0);
  const Ended again = train({"--resume"});
  ASSERT_EQ(again.code, 0) << again.err;
  EXPECT_EQ(again.out, first.out);
  write_text(run_dir() + "/summary.json", "{damaged");
  const Ended damaged = train({"--resume"});
  EXPECT_EQ(damaged.code, 0) << damaged.err;
  EXPECT_EQ(summary(run_dir()).required<int>("steps"), 18);  // what nobody could read is mended
}

TEST_F(Use, TrainAloneIsForSeveralProcesses) {
  train_table();
  const Ended ended = run_lacuna({"eval", run_dir()},
                                 {.in_child = [] { ::setenv("OMPI_COMM_WORLD_SIZE", "2", 1); }});
  EXPECT_EQ(ended.code, 2);
  EXPECT_THAT(ended.err,
              HasSubstr("lacuna eval is for one process, and the launcher has started 2"));
  const Ended one = run_lacuna({"eval", run_dir()},
                               {.in_child = [] { ::setenv("OMPI_COMM_WORLD_SIZE", "1", 1); }});
  EXPECT_EQ(one.code, 0) << one.err;
}

// By whatever name the output leads to an input.
TEST_F(Use, NoOutputOfPredictIsAnInput) {
  namespace fs = std::filesystem;
  train_table();
  fs::create_directories(folder_ / "in/deep");
  const std::string table = folder_ / "in/deep/table.csv";
  write_text(table, Table(2).without_labels);
  fs::create_hard_link(table, folder_ / "hard");
  fs::create_symlink(table, folder_ / "soft");
  fs::create_directory_symlink(folder_ / "in", folder_ / "around");
  fs::create_symlink(table, folder_ / "in/deep/again");
  const std::string before = read_text(table);
  for (const std::string& out :
       {table, folder_ / "hard", folder_ / "soft", folder_ / "around/deep/table.csv",
        folder_ / "in/deep/again", folder_ / "in/../in/deep/table.csv"}) {
    for (const std::string& input : {table, folder_ / "in", folder_ / "around"}) {
      const Ended ended = run_lacuna({"predict", run_dir(), input, "--out", out});
      EXPECT_EQ(ended.code, 2) << out << " of " << input;
      EXPECT_THAT(ended.err, HasSubstr("is the input file '"));
      EXPECT_EQ(read_text(table), before);
      EXPECT_EQ(fs::hard_link_count(table), 2u);
    }
  }
  const std::string data = load_yaml(run_dir() + "/config.yaml").at("data").at("train").text();
  const std::string kept = read_text(data);
  EXPECT_EQ(run_lacuna({"predict", run_dir(), table, "--out", data}).code, 2);
  EXPECT_EQ(read_text(data), kept);
}

// After every command the bytes of all that it reads are what they were.
TEST_F(Use, CommandsLeaveTheirInputsAsTheyWere) {
  namespace fs = std::filesystem;
  train_table();
  write_text(folder_ / "in.csv", Table(2).without_labels);
  write_text(folder_ / "prune.yaml",
             "sparsity: {algorithm: magnitude, sparsity: 0.5, param_filter: default}\n");
  ASSERT_EQ(run_lacuna({"export", run_dir(), "--format", "safetensors", "--out",
                        folder_ / "weights.safetensors"})
                .code,
            0);
  const auto bytes = [&] {
    std::map<std::string, std::string> files;
    for (const auto& entry : fs::recursive_directory_iterator(folder_.path())) {
      if (entry.is_regular_file()) files[entry.path().string()] = read_text(entry.path().string());
    }
    return files;
  };
  const std::string out = folder_ / "new";
  const std::vector<std::vector<std::string>> commands = {
      {"eval", run_dir()},
      {"inspect", run_dir()},
      {"plan", config()},
      {"predict", run_dir(), folder_ / "in.csv", "--out", out + ".csv"},
      {"export", run_dir(), "--format", "npz", "--out", out + ".npz"},
      {"export", run_dir(), "--format", "safetensors", "--out", out + ".safetensors"},
      {"import", folder_ / "weights.safetensors", "--config", config(), "--out", out + "-imported"},
      {"prune", run_dir(), folder_ / "prune.yaml", "--run-dir", out + "-pruned"},
      {"train", config(), "--run-dir", out + "-tuned", "--init-from", run_dir()},
      {"sweep", config(), "--seeds", "1", "--run-dir", out + "-sweep"},
      {"report", run_dir(), "--out", out + ".html"},
      {"compare", run_dir()}};
  for (const std::vector<std::string>& command : commands) {
    const auto before = bytes();
    const Ended ended = run_lacuna(command);
    EXPECT_EQ(ended.code, 0) << command[0] << ": " << ended.err;
    const auto after = bytes();
    for (const auto& [path, text] : before) {
      const auto found = after.find(path);
      EXPECT_TRUE(found != after.end() && found->second == text) << command[0] << ": " << path;
    }
  }
}

TEST_F(Use, FilesOfARunAreNoLinks) {
  train_table();
  write_text(folder_ / "precious", "text");
  for (const char* name : {"log.txt", "metrics.jsonl"}) {
    const std::string file = run_dir() + "/" + name, kept = read_text(file);
    std::filesystem::remove(file);
    std::filesystem::create_symlink(folder_ / "precious", file);
    std::filesystem::remove(run_dir() + "/summary.json");
    const Ended ended = train({"--resume", "--set", "train.epochs=9"});
    EXPECT_EQ(ended.code, 1) << name;
    EXPECT_THAT(ended.err, HasSubstr("it is a link")) << name;
    EXPECT_EQ(read_text(folder_ / "precious"), "text");
    std::filesystem::remove(file);
    write_text(file, kept);
  }
}

// As `cp -al` copies a folder: what goes on in the one is not to be seen in the other.
TEST_F(Use, ARunThatGoesOnLeavesItsHardLinksAsTheyWere) {
  train_table();
  namespace fs = std::filesystem;
  std::map<std::string, std::string> before;
  for (const auto& entry : fs::recursive_directory_iterator(run_dir())) {
    const fs::path copy = fs::path(folder_ / "copy") / fs::relative(entry.path(), run_dir());
    if (entry.is_directory()) continue;
    fs::create_directories(copy.parent_path());
    fs::create_hard_link(entry.path(), copy);
    before[entry.path().string()] = read_text(entry.path().string());
  }
  ASSERT_GE(before.size(), 5u);
  const Ended ended =
      run_lacuna({"train", "--resume", "--run-dir", folder_ / "copy", "--set", "train.epochs=12"});
  ASSERT_EQ(ended.code, 0) << ended.err;
  EXPECT_NE(read_text(folder_ / "copy/log.txt"), before[run_dir() + "/log.txt"]);
  EXPECT_GT(read_text(folder_ / "copy/metrics.jsonl").size(),
            before[run_dir() + "/metrics.jsonl"].size());
  for (const auto& [path, text] : before) EXPECT_EQ(read_text(path), text) << path;
}

}  // namespace
}  // namespace lacuna::kept_files_test
