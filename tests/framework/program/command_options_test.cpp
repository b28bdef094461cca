// Options that several commands have are called the same in all of them.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <sstream>
#include <string>
#include <vector>

#include "framework/program/data/trained_table.h"
#include "lacuna/framework/config/names.h"

namespace lacuna::command_options_test {
namespace {

using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

// As the program itself lists them.
std::vector<std::string> commands() {
  std::string text = run_lacuna({}).err;
  const std::string before = "commands: ";
  text = text.substr(text.find(before) + before.size());
  text = text.substr(0, text.find(" (lacuna --help"));
  std::vector<std::string> names;
  std::istringstream stream(text);
  for (std::string name; std::getline(stream >> std::ws, name, ',');) names.push_back(name);
  return names;
}

// Every spelling of every option, as "--out".
std::vector<std::string> options_of(const std::string& command) {
  std::vector<std::string> names;
  std::istringstream lines(run_lacuna({command, "--help"}).out);
  for (std::string line; std::getline(lines, line);) {
    std::istringstream words(line);
    std::string first;
    words >> first;
    std::istringstream spellings(first);
    for (std::string name; std::getline(spellings, name, ',');) {
      if (name.starts_with("--")) names.push_back(name);
    }
  }
  return names;
}

bool has(const std::vector<std::string>& names, const std::string& name) {
  return std::ranges::find(names, name) != names.end();
}

TEST(CommandOptions, AreCalledTheSameInAllCommands) {
  const std::vector<std::string> writing = {"train",  "prune",  "shrink", "quantize", "predict",
                                            "export", "import", "report", "sweep"};
  const std::vector<std::string> replacing = {"predict", "export", "report"};
  const std::vector<std::string> computing = {"train", "plan",    "prune",    "shrink", "quantize",
                                              "eval",  "predict", "generate", "import", "sweep"};
  const std::vector<std::string> all = commands();
  ASSERT_GE(all.size(), 14u) << join(all, ", ");
  for (const std::string& command : all) {
    const std::vector<std::string> options = options_of(command);
    EXPECT_EQ(has(options, "--out"), has(writing, command)) << command;
    EXPECT_EQ(has(options, "--run-dir"), has(writing, command)) << command;
    EXPECT_EQ(has(options, "--overwrite"), has(replacing, command)) << command;
    EXPECT_EQ(has(options, "--threads"), has(computing, command)) << command;
    for (const char* other : {"--output", "--force", "--dir", "--folder", "--num-threads"}) {
      EXPECT_FALSE(has(options, other)) << command;
    }
  }
}

class OptionNames : public Use {};

TEST_F(OptionNames, WorkUnderBothNames) {
  train_table();
  write_text(folder_ / "in.csv", Table(2).without_labels);
  const auto run = [&](const std::vector<std::string>& arguments) {
    const Ended ended = run_lacuna(arguments, {.folder = folder_.path()});
    EXPECT_EQ(ended.code, 0) << arguments[0] << ": " << ended.err;
    return ended;
  };
  for (const std::string name : {"--out", "--run-dir"}) {
    run({"predict", run_dir(), "in.csv", name, "out" + name + ".csv", "--threads", "1"});
    run({"export", run_dir(), "--format", "npz", name, "weights" + name + ".npz"});
    run({"report", run_dir(), name, "page" + name + ".html"});
    run({"train", config(), name, "run" + name, "--threads", "1", "--quiet"});
    run({"import", "weights" + name + ".npz", "--config", config(), name, "imported" + name,
         "--threads", "1"});
    run({"sweep", config(), "--over", "optimizer.lr=0.05", name, "sweep" + name, "--threads", "1"});
  }
  EXPECT_EQ(read_text(folder_ / "out--out.csv"), read_text(folder_ / "out--run-dir.csv"));
  for (const char* folder : {"run--out", "run--run-dir", "imported--out"}) {
    EXPECT_EQ(load_yaml(folder_ / folder + "/config.yaml").at("train").required<int64_t>("threads"),
              1);
  }
  run({"plan", config(), "--threads", "1"});
  const Ended one = run({"eval", run_dir(), "--threads", "1"});
  EXPECT_EQ(one.out, run({"eval", run_dir(), "--set", "train.threads=1"}).out);
  for (const std::vector<std::string>& use : {std::vector<std::string>{"eval", run_dir()},
                                              {"plan", config()},
                                              {"predict", run_dir(), "in.csv", "--out", "x.csv"}}) {
    std::vector<std::string> arguments = use;
    arguments.insert(arguments.end(), {"--threads", "many"});
    const Ended ended = run_lacuna(arguments, {.folder = folder_.path()});
    EXPECT_EQ(ended.code, 2);
    EXPECT_THAT(ended.err, HasSubstr("threads"));
    EXPECT_THAT(ended.err, testing::ContainsRegex("found '?many"));
  }
}

TEST_F(OptionNames, OverwriteReplacesWhatIsOfAnotherKind) {
  train_table();
  write_text(folder_ / "in.csv", Table(2).without_labels);
  ASSERT_EQ(predict("in.csv").code, 0);
  const std::string table = read_text(folder_ / "out.csv");
  ASSERT_EQ(predict("in.csv").code, 0);  // a table takes the place of another one
  const std::string image("\x89PNG\r\n\x1a\n\0\0\0\rIHDR", 16);
  write_text(folder_ / "out.csv", image);
  const Ended refused = predict("in.csv");
  EXPECT_EQ(refused.code, 2);
  EXPECT_THAT(refused.err, HasSubstr("out.csv' exists and is not a text file; give another name"));
  EXPECT_EQ(read_text(folder_ / "out.csv"), image);
  EXPECT_EQ(run_lacuna({"predict", run_dir(), folder_ / "in.csv", "--out", folder_ / "out.csv",
                        "--overwrite"})
                .code,
            0);
  EXPECT_EQ(read_text(folder_ / "out.csv"), table);

  write_text(folder_ / "notes.txt", "mine");
  const std::vector<std::string> report = {"report", run_dir(), "--out", folder_ / "notes.txt"};
  EXPECT_THAT(run_lacuna(report).err, HasSubstr("is not a report; give another name"));
  std::vector<std::string> forced = report;
  forced.emplace_back("--overwrite");
  EXPECT_EQ(run_lacuna(forced).code, 0);
  EXPECT_THAT(read_text(folder_ / "notes.txt"), StartsWith("<!DOCTYPE html>"));
  // What a run is made of is no one's to replace.
  EXPECT_EQ(
      run_lacuna({"report", run_dir(), "--out", run_dir() + "/config.yaml", "--overwrite"}).code,
      2);
  EXPECT_THAT(read_text(run_dir() + "/config.yaml"), Not(HasSubstr("html")));
}

}  // namespace
}  // namespace lacuna::command_options_test
