// Ids mean what a model learned, or it is said: on resuming, from a teacher, and of a table of
// rows.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "framework/program/runs.h"

namespace lacuna::vocabulary_test {
namespace {

using testing::HasSubstr;
using testing::Not;

// As many characters in both, of which one differs.
std::string text_with(char letter) {
  std::string text;
  for (int i = 0; i < 400; ++i) text += i % 7 == 0 ? letter : static_cast<char>('b' + i % 5);
  return text;
}

class Vocabulary : public RunFixture {
 protected:
  Vocabulary() {
    text_ = folder_.write("text.txt", text_with('a'));
    write_text(config(),
               "data: {type: text, path: " + text_ +
                   ", tokenizer: characters, context: 8, validation: 0.2}\n"
                   "model: {type: gpt2, n_layer: 1, n_head: 2, n_embd: 8, n_positions: 8}\n"
                   "optimizer: {type: sgd, lr: 0.01}\n"
                   "train: {steps: 2, batch_size: 4, eval_every: null, threads: 1}\n");
  }
  std::string text_;
};

TEST_F(Vocabulary, OfOtherTextIsRefusedOnResuming) {
  ASSERT_EQ(train({}, "run").code, 0);
  write_text(text_, text_with('z'));
  const Ended ended =
      run_lacuna({"train", "--resume", "--run-dir", run_dir("run"), "--set", "train.steps=4"});
  EXPECT_NE(ended.code, 0);
  EXPECT_THAT(ended.err, HasSubstr("a different vocabulary than the run was trained with"));
  write_text(text_, text_with('a'));
  EXPECT_EQ(
      run_lacuna({"train", "--resume", "--run-dir", run_dir("run"), "--set", "train.steps=4"}).code,
      0);
}

// Neither the model nor the loss of the run fits the data then, and neither is what is wrong.
TEST_F(Vocabulary, OfAnotherSizeIsRefusedOnResuming) {
  ASSERT_EQ(train({"--set", "loss={class_weights: [1, 1, 1, 1, 1, 1, 1]}"}, "run").code, 0);
  for (const std::string& text : {text_with('a') + "xyz", text_with('b')}) {
    write_text(text_, text);
    for (const bool changes : {false, true}) {
      std::vector<std::string> resume = {"train",        "--resume", "--run-dir",
                                         run_dir("run"), "--set",    "train.steps=4"};
      if (changes) resume.emplace_back("--change");
      const Ended ended = run_lacuna(resume);
      EXPECT_EQ(ended.code, 1);
      EXPECT_THAT(ended.err, HasSubstr("a different vocabulary than the run was trained with"));
      EXPECT_THAT(ended.err, Not(HasSubstr("vocab_size")));
    }
  }
}

// The same characters, as many of them, in another order; moved elsewhere it is the same text.
TEST_F(Vocabulary, OfTheSameKindDoesNotMakeItTheSameText) {
  ASSERT_EQ(train({}, "run").code, 0);
  std::string turned = text_with('a');
  std::swap(turned[100], turned[101]);
  write_text(text_, turned);
  const std::vector<std::string> resume = {"train",        "--resume", "--run-dir",
                                           run_dir("run"), "--set",    "train.steps=4"};
  const Ended ended = run_lacuna(resume);
  EXPECT_EQ(ended.code, 1);
  EXPECT_THAT(ended.err, HasSubstr("changed since this was saved: other training inputs"));
  std::vector<std::string> moved = resume;
  moved.insert(moved.end(), {"--set", "data.path=" + folder_.write("moved.txt", text_with('a'))});
  const Ended gone_on = run_lacuna(moved);
  EXPECT_EQ(gone_on.code, 0) << gone_on.err;
}

TEST_F(Vocabulary, OfATeacherMustBeTheDatas) {
  ASSERT_EQ(train({}, "teacher").code, 0);
  const std::string taught = "loss={type: distillation, teacher: '" + run_dir("teacher") + "'}";
  EXPECT_EQ(train({"--set", taught}, "same").code, 0);
  write_text(text_, text_with('z'));
  const Ended ended = train({"--set", taught}, "other");
  EXPECT_EQ(ended.code, 2);
  EXPECT_THAT(ended.err,
              HasSubstr("loss.teacher: the teacher was trained on text with a different"));
}

TEST_F(Vocabulary, OfAModelHoldsAllIdsOfTheData) {
  for (const char* command : {"train", "plan"}) {
    const Ended ended = run_lacuna({command, config(), "--set", "model.vocab_size=4"});
    EXPECT_EQ(ended.code, 2);
    EXPECT_THAT(ended.err, HasSubstr("'transformer.wte' (token_embedding) has 4 rows, and the data "
                                     "has ids up to 6; give vocab_size: 7"));
  }
}

// Tables are usual that are rounded up, as to a multiple of 64.
TEST_F(Vocabulary, OfAModelMayBeLarger) {
  const Ended trained = train({"--set", "model.vocab_size=64", "--set", "train.eval_every=1",
                               "--set", "loss={class_weights: [1, 1, 2, 1, 1, 1, 1]}"});
  ASSERT_EQ(trained.code, 0) << trained.err;
  const Ended evaluated = run_lacuna({"eval", run_dir(), "--json"});
  ASSERT_EQ(evaluated.code, 0) << evaluated.err;
  EXPECT_EQ(parse_yaml(evaluated.out, "out").at("splits").items()[0].at("loss").text(),
            summary(run_dir()).at("validation_loss").text());
  const Ended generated = run_lacuna({"generate", run_dir(), "--prompt", "b", "--tokens", "100"});
  ASSERT_EQ(generated.code, 0) << generated.err;
  EXPECT_EQ(generated.out.size(), 102u);
  EXPECT_EQ(generated.out.find_first_not_of("abcdef\n"), std::string::npos);
}

TEST_F(Vocabulary, OfLoadedWeightsIsTold) {
  ASSERT_EQ(train({}, "first").code, 0);
  const std::string from = "model.init_from=" + run_dir("first");
  EXPECT_THAT(train({"--set", from}, "same").err, Not(HasSubstr("a different vocabulary")));
  write_text(text_, text_with('z'));
  const Ended ended = train({"--set", from}, "other");
  EXPECT_EQ(ended.code, 0) << ended.err;
  EXPECT_THAT(ended.err, HasSubstr("the loaded weights come from a run on text with a different "
                                   "vocabulary than the data's"));
}

TEST_F(Vocabulary, OfNamedInputsIsKnownBeforeTraining) {
  const std::string layers =
      "model=[{type: token_embedding, features: 12}, {type: attention, heads: 2, causal: true, "
      "mask: MASK}, "
      "{type: linear, out_features: 7}]";
  for (const char* command : {"train", "plan"}) {
    std::string misspelt = layers;
    misspelt.replace(misspelt.find("MASK"), 4, "input_id");
    const Ended ended = run_lacuna({command, config(), "--set", misspelt});
    EXPECT_EQ(ended.code, 2);
    EXPECT_THAT(ended.err, HasSubstr("layer 'attention1' (attention) needs 'input_id', which the "
                                     "data's batches do not have; did you mean 'input_ids'?"));
  }
  std::string usual = layers;  // which a batch may be without
  usual.replace(usual.find("MASK"), 4, "attention_mask");
  EXPECT_EQ(run_lacuna({"plan", config(), "--set", usual}).code, 0);
}

}  // namespace
}  // namespace lacuna::vocabulary_test
