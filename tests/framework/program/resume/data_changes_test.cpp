// A run that goes on, or is evaluated, on other data than it was trained with: every type of data,
// a single value on the disk.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <string>
#include <vector>

#include "framework/data/stored_data.h"
#include "framework/program/runs.h"

namespace lacuna::data_changes_test {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

constexpr const char* kTrain = R"(
optimizer: {type: adam}
train: {steps: 4, batch_size: 4, threads: 1, log_every: 2, checkpoint: {every: 2}}
)";

class DataChanges : public RunFixture {
 protected:
  void begin(const std::string& data, const std::string& model) {
    write_text(config(), "data: " + data + "\nmodel: " + model + kTrain);
    const Ended trained = train();
    ASSERT_EQ(trained.code, 0) << trained.err;
  }
  Ended resume(std::vector<std::string> more = {}, int steps = 6) const {
    more.insert(more.begin(), {"train", "--resume", "--run-dir", run_dir(), "--set",
                               "train.steps=" + std::to_string(steps)});
    return run_lacuna(more);
  }
  Ended evaluate(std::vector<std::string> more = {}) const {
    more.insert(more.begin(), {"eval", run_dir(), "--last"});
    return run_lacuna(more);
  }
  static std::string words(const Flip& flip) { return "other " + flip.what; }
  std::string log() const { return read_text(run_dir() + "/log.txt"); }

  // The newest checkpoint as earlier versions wrote it.
  void forget_origins(int64_t step) const {
    Checkpoint saved = read_checkpoint(checkpoint(step));
    StateDict state;
    for (const auto& [name, value] : saved.state.values()) {
      if (!name.starts_with("origins/")) state.set(name, value);
    }
    saved.state = state;
    std::filesystem::remove(checkpoint(step));
    write_checkpoint(checkpoint(step), saved);
  }
};

TEST_F(DataChanges, OfEachTypeAreRefusedAndAccepted) {
  for (const StoredData& data : all_stored_data(folder_)) {
    std::filesystem::remove_all(run_dir());
    begin(data.section, data.model);
    const bool is_held_out = data.section.find("validation: 8") != std::string::npos;
    for (const Flip& flip : data.flips) {
      const std::string original = read_text(flip.path), name = data.name + ": " + flip.what;
      write_text(flip.path, flip.bytes);
      const Ended resumed = resume();
      EXPECT_EQ(resumed.code, 1) << name;
      EXPECT_THAT(resumed.err, AllOf(HasSubstr(words(flip)), HasSubstr("--change"))) << name;
      const Ended evaluated = evaluate();
      if (!flip.what.starts_with("training") || is_held_out) {
        EXPECT_EQ(evaluated.code, 1) << name;
        EXPECT_THAT(evaluated.err, AllOf(HasSubstr(words(flip)), HasSubstr("--data-changed")))
            << name;
        const Ended all_the_same = evaluate({"--data-changed"});
        EXPECT_EQ(all_the_same.code, 0) << name << all_the_same.err;
        EXPECT_THAT(all_the_same.err, HasSubstr("warning: the data has changed")) << name;
      } else {
        EXPECT_EQ(evaluated.code, 0) << name << evaluated.err;  // splits in files of their own
      }
      if (&flip != &data.flips.back()) write_text(flip.path, original);
    }
    if (data.flips.empty()) continue;
    const Ended accepted = resume({"--change"});
    EXPECT_EQ(accepted.code, 0) << data.name << accepted.err;
    EXPECT_THAT(log(), HasSubstr("changed at step 4: " + words(data.flips.back()))) << data.name;
    EXPECT_EQ(resume({}, 8).code, 0) << data.name;  // its checkpoints have the new hash
    EXPECT_EQ(evaluate().code, 0) << data.name;
  }
}

// Rows that moved make other splits of the same examples.
TEST_F(DataChanges, OfTheOrderAreNoticed) {
  const StoredData data = stored::csv(folder_, "table", "");
  begin(data.section, data.model);
  const std::string path = data.flips.front().path;
  std::istringstream lines(read_text(path));
  std::string header, rows;
  std::getline(lines, header);
  for (std::string line; std::getline(lines, line);) rows = line + "\n" + rows;
  write_text(path, header + "\n" + rows);
  EXPECT_THAT(resume().err, HasSubstr("other training inputs and labels or targets"));
  EXPECT_THAT(
      evaluate().err,
      HasSubstr(
          "(the validation split is a part of that data, and may contain training examples)"));
  const Ended json = evaluate({"--data-changed", "--json"});
  const Config report = parse_yaml(json.out, "out");
  ASSERT_TRUE(report.has("data_changed")) << json.out;
  EXPECT_THAT(report.at("data_changed").items().front().text(), HasSubstr("other training inputs"));
}

TEST_F(DataChanges, OfTheSizeGoOnFromTheSameStep) {
  const StoredData data = stored::csv(folder_, "table", "");
  const std::string path = data.flips.front().path, table = read_text(path);
  std::string shorter = table;
  for (int i = 0; i < 12; ++i) shorter.resize(shorter.rfind('\n', shorter.size() - 2) + 1);
  for (const bool has_hash : {true, false}) {
    std::filesystem::remove_all(run_dir());
    write_text(path, table);
    begin(data.section, data.model);
    if (!has_hash) forget_origins(4);
    write_text(path, shorter);
    const Ended refused = resume();
    EXPECT_EQ(refused.code, 1);
    EXPECT_THAT(refused.err,
                HasSubstr(has_hash ? "training data of a different size (28, which was 40)"
                                   : "20 training examples, which were 32"));
    const Ended accepted = resume({"--change"});
    EXPECT_EQ(accepted.code, 0) << accepted.err;
    // Epochs had eight batches, and have five.
    const StateDict state = read_checkpoint(checkpoint(6)).state;
    EXPECT_EQ(state.get<int64_t>("loader/dataset_size"), 20);
    EXPECT_EQ(state.get<int64_t>("loader/epoch"), 1);
    EXPECT_EQ(state.get<int64_t>("loader/batch"), 1);
    EXPECT_EQ(resume({}, 20).code, 0);
  }
}

TEST_F(DataChanges, AreNotNoticedWithoutAHashAndALineSaysSo) {
  const StoredData data = stored::hdf5(folder_);
  begin(data.section, data.model);
  forget_origins(4);
  write_text(data.flips.front().path, data.flips.front().bytes);
  EXPECT_EQ(evaluate().code, 0);
  const Ended resumed = resume();
  EXPECT_EQ(resumed.code, 0) << resumed.err;
  const std::string line = "the checkpoint has no hash of its data";
  const size_t first = log().find(line);
  ASSERT_NE(first, std::string::npos);
  EXPECT_EQ(log().find(line, first + 1), std::string::npos);
  EXPECT_EQ(resume({}, 8).code, 0);
  EXPECT_EQ(log().find(line, first + 1), std::string::npos);  // the next one has a hash
}

// Data that was moved is the same data, and a test split may be given for an evaluation.
TEST_F(DataChanges, AreNotOfThePath) {
  const StoredData data = stored::csv(folder_, "table", "");
  begin(data.section, data.model);
  const std::string train = folder_ / "table_train.csv", test = folder_ / "table_test.csv";
  std::filesystem::rename(train, folder_ / "moved.csv");
  const std::string moved = "data.train=" + (folder_ / "moved.csv");
  EXPECT_EQ(evaluate({"--set", moved}).code, 0);
  const Ended resumed = resume({"--set", moved});
  EXPECT_EQ(resumed.code, 0) << resumed.err;
  folder_.write("other.csv", stored::table(9));
  const std::string other = "data.test=" + (folder_ / "other.csv");
  EXPECT_EQ(evaluate({"--set", moved, "--set", other}).code, 0);
  EXPECT_EQ(evaluate({"--set", other}).code, 0);  // without the training data
  EXPECT_THAT(resume({"--set", other}, 8).err,
              HasSubstr("test data of a different size (9, which"));
  write_text(train, stored::table(39));
  const Ended shorter = evaluate({"--set", "data.train=" + train});
  EXPECT_EQ(shorter.code, 1);  // the validation split is another part of it
  EXPECT_EQ(evaluate({"--set", "data.train=" + train, "--set", "data.validation=0"}).code, 0);
}

TEST_F(DataChanges, ThatRenameColumnsAreAccepted) {
  const StoredData data = stored::csv(folder_, "table", "");
  begin(data.section, data.model);
  for (const char* name : {"table_train.csv", "table_test.csv"}) {
    std::string text = read_text(folder_ / name);
    write_text(folder_ / name, text.replace(0, 1, "A"));
  }
  EXPECT_THAT(
      resume().err,
      HasSubstr("other names (the table has the columns 'A', but the model was trained on 'a')"));
  EXPECT_EQ(resume({"--change"}).code, 0);
}

TEST_F(DataChanges, OfClassesAndVocabulariesAreNeverAccepted) {
  std::string named = "a,kind\n";
  for (int i = 0; i < 20; ++i) named += std::to_string(i) + (i % 2 == 0 ? ",big\n" : ",small\n");
  const std::string table = folder_.write("named.csv", named);
  begin("{type: csv, train: " + table + "}", stored::kDense);
  for (size_t at = 0; (at = named.find("big", at)) != std::string::npos; at += 4) {
    named.insert(at, "z");
  }
  write_text(table, named);
  EXPECT_THAT(resume({"--change"}).err, HasSubstr("the data's classes have other names"));

  std::filesystem::remove_all(run_dir());
  const StoredData text = stored::text(folder_, "text", "");
  begin(text.section, text.model);
  const std::string path = text.flips.front().path;
  std::string other = read_text(path);
  std::ranges::replace(other, 'a', 'x');
  write_text(path, other);
  EXPECT_THAT(resume({"--change"}).err, HasSubstr("a different vocabulary"));
}

class TeacherChanges : public DataChanges {
 protected:
  TeacherChanges() {
    EXPECT_EQ(train({}, "teacher").code, 0);
    EXPECT_EQ(train({"--seed", "5"}, "other").code, 0);
    EXPECT_EQ(train(set("teacher"), "run").code, 0);
  }
  std::vector<std::string> set(const std::string& teacher) const {
    return {"--set", "loss={type: distillation, teacher: " + run_dir(teacher) + "}"};
  }
  Ended go_on(std::vector<std::string> more = {}, int epochs = 4) const {
    more.insert(more.begin(), {"train", "--resume", "--run-dir", run_dir(), "--set",
                               "train.epochs=" + std::to_string(epochs)});
    return run_lacuna(more);
  }
};

TEST_F(TeacherChanges, AreRefusedAndAccepted) {
  // Trained further.
  ASSERT_EQ(
      run_lacuna({"train", "--resume", "--run-dir", run_dir("teacher"), "--set", "train.epochs=4"})
          .code,
      0);
  const Ended refused = go_on();
  EXPECT_EQ(refused.code, 1);
  EXPECT_THAT(refused.err, AllOf(HasSubstr("another teacher (of step 24, which was 18)"),
                                 HasSubstr("--change")));
  const Ended accepted = go_on({"--change"});
  EXPECT_EQ(accepted.code, 0) << accepted.err;
  EXPECT_THAT(log(), HasSubstr("changed at step 18: another teacher (of step 24, which was 18)"));
  EXPECT_EQ(go_on({}, 5).code, 0);
}

TEST_F(TeacherChanges, OfTheWeightsAloneAreRefused) {
  std::filesystem::remove_all(run_dir("teacher"));
  EXPECT_THAT(go_on().err, HasSubstr("loss.teacher"));  // it is gone
  std::filesystem::rename(run_dir("other"), run_dir("teacher"));
  EXPECT_THAT(go_on().err, HasSubstr("another teacher (of step 18, which was 18)"));
}

TEST_F(TeacherChanges, AreNotOfThePath) {
  std::filesystem::rename(run_dir("teacher"), run_dir("moved"));
  const std::string setting = "loss.teacher=" + run_dir("moved");
  EXPECT_EQ(go_on({"--set", setting}).code, 0);
  EXPECT_THAT(go_on({"--set", "loss.teacher=" + run_dir("other")}, 5).err,
              HasSubstr("another teacher"));
}

TEST_F(TeacherChanges, AreNotNoticedWithoutAHashAndALineSaysSo) {
  forget_origins(18);
  std::filesystem::remove_all(run_dir("teacher"));
  std::filesystem::rename(run_dir("other"), run_dir("teacher"));
  EXPECT_EQ(go_on().code, 0);
  EXPECT_THAT(log(), HasSubstr("the checkpoint has no hash of its data and its teacher"));
}

}  // namespace
}  // namespace lacuna::data_changes_test
