// Runs on tables of sentences, of one and of two, and predictions by the columns' names.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "framework/program/runs.h"

namespace lacuna::sentence_tables_test {
namespace {

using testing::HasSubstr;
using testing::Not;

constexpr const char* kPairs = R"(
data: {type: labelled_text, train: TRAIN, validation: 0.2, text_column: [claim, answer], label_column: agrees, max_length: 12, cls: true}
model: {type: bert, hidden_size: 16, num_hidden_layers: 1, num_attention_heads: 2, intermediate_size: 32, max_position_embeddings: 12, hidden_dropout_prob: 0.0, attention_probs_dropout_prob: 0.0}
optimizer: {type: adamw, lr: 0.01}
sparsity: {algorithm: static, sparsity: 0.5}
train: {steps: 150, batch_size: 8, log_every: 50, threads: 1}
)";

class SentenceTables : public RunFixture {
 protected:
  void SetUp() override {
    std::string rows = "answer,agrees,claim\n";
    for (int i = 0; i < 80; ++i) {
      // The class is said by a word that counts in the second sentence alone.
      const bool agrees = i % 2 == 0;
      rows += std::string(agrees ? "yes it is," : "no it is not,") + (agrees ? "1" : "0") +
              (i % 3 == 0 ? ",yes or no\n" : ",no or yes\n");
    }
    write_text(folder_ / "train.csv", rows);
    std::string yaml = kPairs;
    yaml.replace(yaml.find("TRAIN"), 5, folder_ / "train.csv");
    write_text(config(), yaml);
  }
  Ended predict(const std::string& file) {
    return run_lacuna({"predict", run_dir(), folder_ / file, "--out", folder_ / "out.csv"});
  }
};

TEST_F(SentenceTables, LearnFromPairsAndPredictByColumns) {
  const Ended trained = train();
  ASSERT_EQ(trained.code, 0) << trained.err;
  EXPECT_GT(summary(run_dir()).required<double>("validation_accuracy"), 0.95);
  write_text(folder_ / "in.csv", "claim,answer\nyes or no,no it is not\nno or yes,\"yes it is\"\n");
  const Ended plain = predict("in.csv");
  ASSERT_EQ(plain.code, 0) << plain.err;
  EXPECT_THAT(plain.out, Not(HasSubstr("accuracy")));
  const std::string out = read_text(folder_ / "out.csv");
  EXPECT_THAT(out, HasSubstr("\n0,"));
  EXPECT_THAT(out, HasSubstr("\n1,"));
  write_text(folder_ / "known.csv",
             "agrees,id,claim,answer\n1,7,yes or no,no it is not\n1,8,no or yes,yes it is\n");
  const Ended known = predict("known.csv");
  ASSERT_EQ(known.code, 0) << known.err;
  EXPECT_THAT(known.out, HasSubstr("accuracy 50.00 % of 2 examples, by the column 'agrees'"));
  EXPECT_EQ(read_text(folder_ / "out.csv"), out);

  write_text(folder_ / "long.csv",
             "claim,answer\nyes or no or yes or no,no it is not and it is not\nyes or no,no\n");
  EXPECT_THAT(predict("long.csv").err,
              HasSubstr("1 of 2 examples has more than 12 tokens, and the rest is cut off"));
  write_text(folder_ / "half.csv", "claim\nyes or no\n");
  EXPECT_THAT(predict("half.csv").err, HasSubstr("half.csv: no column 'answer'"));
}

TEST_F(SentenceTables, PredictNamesOfClasses) {
  std::string rows = read_text(folder_ / "train.csv");
  for (const auto& [digit, name] : {std::pair{",1,", ",agrees with it,"}, {",0,", ",differs,"}}) {
    for (size_t at; (at = rows.find(digit)) != std::string::npos;) rows.replace(at, 3, name);
  }
  write_text(folder_ / "train.csv", rows);
  const Ended trained = train();
  ASSERT_EQ(trained.code, 0) << trained.err;
  write_text(folder_ / "known.csv",
             "agrees,claim,answer\ndiffers,yes or no,no it is not\ndiffers,no or yes,yes it is\n");
  const Ended known = predict("known.csv");
  ASSERT_EQ(known.code, 0) << known.err;
  EXPECT_THAT(known.out, HasSubstr("accuracy 50.00 % of 2 examples, by the column 'agrees'"));
  const std::string out = read_text(folder_ / "out.csv");
  EXPECT_THAT(out, HasSubstr("\ndiffers,"));
  EXPECT_THAT(out, HasSubstr("\nagrees with it,"));
  // The test file's names alone say what its labels are, the training data being gone.
  std::filesystem::remove(folder_ / "train.csv");
  const Ended evaluated =
      run_lacuna({"eval", run_dir(), "--set", "data.test=" + (folder_ / "known.csv"), "--set",
                  "data.validation=0"});
  EXPECT_EQ(evaluated.code, 0) << evaluated.err;
  EXPECT_THAT(evaluated.out, HasSubstr("accuracy 50.00 %"));
}

TEST_F(SentenceTables, AreTheSameRunStreamed) {
  const auto loss = [&](const std::string& streamed) {
    const Ended ended = train({"--set", "data.streamed=" + streamed, "--set", "train.steps=20",
                               "--set", "train.log_every=1"});
    EXPECT_EQ(ended.code, 0) << ended.err;
    const std::string result = summary(run_dir()).at("train_loss").text();
    std::filesystem::remove_all(run_dir());
    return result;
  };
  EXPECT_EQ(loss("true"), loss("false"));
}

// Whatever the table is called.
TEST_F(SentenceTables, AreReadByTheirFirstLine) {
  std::string rows = "id\tagrees\tanswer\n";
  for (int i = 0; i < 40; ++i) {
    rows += std::to_string(i) + (i % 2 == 0 ? "\t1\tyes it is\n" : "\t0\tno it is not\n");
  }
  write_text(folder_ / "train.tsv", rows);
  const Ended trained =
      train({"--set", "data.train=" + (folder_ / "train.tsv"), "--set", "data.text_column=answer",
             "--set", "data.delimiter=\"\\t\"", "--set", "train.steps=40"});
  ASSERT_EQ(trained.code, 0) << trained.err;
  const auto predictions = [&](const std::string& file) {
    const Ended ended = predict(file);
    EXPECT_EQ(ended.code, 0) << ended.err;
    return read_text(folder_ / "out.csv");
  };
  const std::string table = "id\tagrees\tanswer\n7\t1\tyes it is\n8\t0\tno it is not\n";
  write_text(folder_ / "new.csv", table);
  const std::string expected = predictions("new.csv");
  for (const char* name : {"new.tsv", "new.txt", "new"}) {
    write_text(folder_ / name, table);
    EXPECT_EQ(predictions(name), expected) << name;
  }
  write_text(folder_ / "plain.txt", "yes it is\nno it is not\n");
  EXPECT_EQ(predictions("plain.txt"), expected);
  EXPECT_THAT(
      predict("plain.txt").err,
      HasSubstr(
          "the first line does not name the column 'answer', so each line is read as a sentence"));
  write_text(folder_ / "new.tsv", "id\tanswers\n7\tyes it is\n");
  EXPECT_THAT(predict("new.tsv").err, HasSubstr("new.tsv: no column 'answer'"));
}

TEST_F(SentenceTables, TellLabelsThatAreTakenForWords) {
  std::string lines;
  for (int i = 0; i < 20; ++i) lines += i % 2 == 0 ? "1 a good one\n" : "0 a bad one\n";
  write_text(folder_ / "lines.txt", lines);
  const Ended trained =
      train({"--set", "data.train=" + (folder_ / "lines.txt"), "--set", "data.text_column=null",
             "--set", "data.label_column=null", "--set", "train.steps=2"});
  ASSERT_EQ(trained.code, 0) << trained.err;
  EXPECT_THAT(predict("lines.txt").err, HasSubstr("every line begins with a number, which is read "
                                                  "as a word of the sentence"));
  write_text(folder_ / "plain.txt", "a good one\n7 good ones\n");
  EXPECT_THAT(predict("plain.txt").err, Not(HasSubstr("begins with a number")));
}

}  // namespace
}  // namespace lacuna::sentence_tables_test
