// Runs on text: a language model that is trained sparse, resumed, evaluated and goes on with a
// text; a classifier of sentences.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "framework/program/data/trained_table.h"
#include "framework/program/runs.h"
#include "framework/program/text/play.h"

namespace lacuna::text_runs_test {
namespace {

using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

constexpr const char* kLanguageModel = R"(
data: {type: text, path: PATH, tokenizer: characters, context: 16, validation: 0.2}
model: {type: gpt2, n_layer: 2, n_head: 2, n_embd: 16, n_positions: 16, attn_pdrop: 0.1}
optimizer: {type: adamw, lr: 0.01, weight_decay: 0.1, no_decay: [bias, norm], clip_norm: 1.0}
sparsity:
  algorithm: rigl
  sparsity: 0.5
  layout: csr
  update: {freq: 4, stop: 20}
train: {steps: 24, batch_size: 8, log_every: 4, eval_every: 8, checkpoint: {every: 5}, threads: 1}
)";

class TextRuns : public RunFixture {
 protected:
  void SetUp() override {
    write_text(folder_ / "play.txt", play());
    use(kLanguageModel, "play.txt");
  }
  void use(std::string yaml, const std::string& file) const {
    yaml.replace(yaml.find("PATH"), 4, folder_ / file);
    write_text(config(), yaml);
  }
  // The run "part", resumed until step 24, equals the run "whole" bit for bit.
  void expect_part_becomes_whole() const {
    const Ended resumed =
        run_lacuna({"train", "--resume", "--run-dir", run_dir("part"), "--set", "train.steps=24"});
    ASSERT_EQ(resumed.code, 0) << resumed.err;
    EXPECT_THAT(differences(read_checkpoint(checkpoint(24, "part")).state,
                            read_checkpoint(checkpoint(24, "whole")).state),
                testing::IsEmpty());
  }
};

TEST_F(TextRuns, TrainEvaluateAndGoOnWithAText) {
  const Ended trained = train({"--set", "train.steps=150"});
  ASSERT_EQ(trained.code, 0) << trained.err;
  EXPECT_THAT(trained.out, HasSubstr("lacuna generate " + run_dir() + " --prompt TEXT"));
  const Config result = summary(run_dir());
  const auto loss = result.required<double>("validation_loss");
  EXPECT_LT(loss, 1.5);  // of 17 characters: 2.8 at first
  EXPECT_NEAR(result.required<double>("validation_perplexity"), std::exp(loss), 1e-9);
  const auto bits = result.required<double>("validation_bits_per_character");
  EXPECT_NEAR(bits, loss / std::log(2.0), 1e-9);
  EXPECT_EQ(result.required<double>("bits_per_character"), bits);

  const Ended evaluated = run_lacuna({"eval", run_dir(), "--json"});
  ASSERT_EQ(evaluated.code, 0) << evaluated.err;
  const Config split = parse_yaml(evaluated.out, "out").at("splits").items()[0];
  EXPECT_EQ(split.at("loss").text(), result.at("validation_loss").text());
  EXPECT_EQ(split.at("perplexity").text(), result.at("validation_perplexity").text());
  EXPECT_EQ(split.required<double>("bits_per_character"), bits);
  EXPECT_FALSE(split.has("confusion_matrix"));

  // Another text is read by the run's own vocabulary.
  write_text(folder_ / "other.txt", "that is not the question\n");
  const Ended other =
      run_lacuna({"eval", run_dir(), "--json", "--set", "data.test=" + (folder_ / "other.txt")});
  ASSERT_EQ(other.code, 0) << other.err;
  EXPECT_EQ(parse_yaml(other.out, "out").at("splits").items()[1].required<int64_t>("examples"), 2);
  write_text(folder_ / "other.txt", std::string(200, 'a') + std::string(200, 'z'));
  const Ended refused =
      run_lacuna({"eval", run_dir(), "--set", "data.path=" + (folder_ / "other.txt")});
  EXPECT_EQ(refused.code, 1);
  EXPECT_THAT(refused.err, HasSubstr("a different vocabulary than the model was trained with"));

  const std::vector<std::string> command = {"generate", run_dir(), "--prompt", "to be",
                                            "--tokens", "40",      "--seed",   "3"};
  const Ended generated = run_lacuna(command);
  ASSERT_EQ(generated.code, 0) << generated.err;
  EXPECT_THAT(generated.out, StartsWith("to be"));
  EXPECT_EQ(generated.out.size(), 5u + 40u + 1u);
  EXPECT_EQ(run_lacuna(command).out, generated.out);
  const Ended full = run_lacuna(command, {.standard_out = "/dev/full"});
  EXPECT_EQ(full.code, 1);
  EXPECT_EQ(full.err, "error: cannot write to the standard output: No space left on device\n");
}

TEST_F(TextRuns, MaySparsifyActivations) {
  const Ended ended =
      train({"--set", "sparsity=null", "--set",
             "sparsifiers=[{tensor: \"*.gelu1.output\", sparsifier: {type: nm, n: 2, m: 4}}]"});
  EXPECT_EQ(ended.code, 0) << ended.err;
}

// A length that neither file states: both have that of the data.
TEST_F(TextRuns, BeginAtARunOfTheSameLength) {
  std::string yaml = kLanguageModel;
  yaml.erase(yaml.find("sparsity:"), yaml.find("train:") - yaml.find("sparsity:"));
  yaml.erase(yaml.find(", n_positions: 16"), std::string(", n_positions: 16").size());
  use(yaml, "play.txt");
  ASSERT_EQ(train({"--set", "train.steps=2"}).code, 0);
  const Ended next = train({"--init-from", run_dir(), "--set", "train.steps=2"}, "next");
  ASSERT_EQ(next.code, 0) << next.err;
  EXPECT_EQ(load_yaml(run_dir("next/config.yaml")).at("model").required<int64_t>("n_positions"),
            16);
}

TEST_F(TextRuns, ResumeBitForBit) {
  ASSERT_EQ(train({}, "whole").code, 0);
  ASSERT_EQ(train({"--set", "train.steps=13"}, "part").code, 0);
  expect_part_becomes_whole();
}

// 010 is ten, not eight, and 1e1 is ten in a configuration.
TEST_F(TextRuns, CountTokensInDecimalDigits) {
  ASSERT_EQ(train().code, 0);
  const auto text = [&](const char* count) {
    return run_lacuna({"generate", run_dir(), "--prompt", "to", "--tokens", count}).out;
  };
  EXPECT_NE(text("8"), text("10"));
  EXPECT_EQ(text("010"), text("10"));
  EXPECT_EQ(text("1e1"), text("10"));
}

TEST_F(TextRuns, SayWhatTheyCannotGoOnWith) {
  ASSERT_EQ(train().code, 0);
  const auto refused = [&](const std::vector<std::string>& more, const std::string& message) {
    std::vector<std::string> command = {"generate", run_dir()};
    command.insert(command.end(), more.begin(), more.end());
    const Ended ended = run_lacuna(command);
    EXPECT_NE(ended.code, 0);
    EXPECT_THAT(ended.err, HasSubstr(message));
  };
  refused({"--prompt", ""}, "--prompt has no token");
  for (const char* count : {"-1", "1.5", "many", "1000000001", "99999999999999999999", "0x10"}) {
    refused({"--tokens", count},
            "--tokens: expected a number of tokens from 0 to 1000000000, found " +
                std::string(count) + "\n");
  }
  refused({"--tokens", ""},
          "--tokens: expected a number of tokens from 0 to 1000000000, found nothing");
  refused({"--temperature", "nan"}, "--temperature: expected a finite number of at least 0, found");
  refused({"--top-k", "-1"}, "--top-k: expected a number of tokens from 0 to");
  write_text(folder_ / "lines.txt", "to be\n");
  const Ended predicted =
      run_lacuna({"predict", run_dir(), folder_ / "lines.txt", "--out", folder_ / "out.csv"});
  EXPECT_THAT(predicted.err, HasSubstr("use `lacuna generate` to continue a text"));
  write_text(folder_ / "tokens.bin", std::string(64, '\1'));
  const Ended tokens =
      run_lacuna({"predict", run_dir(), folder_ / "tokens.bin", "--out", folder_ / "out.csv"});
  EXPECT_EQ(tokens.code, 1);
  EXPECT_THAT(tokens.err, HasSubstr("data.dir=DIR for token files"));

  write_text(config(), kTinyRun);
  ASSERT_EQ(train({}, "digits").code, 0);
  const Ended digits = run_lacuna({"generate", run_dir("digits")});
  EXPECT_EQ(digits.code, 1);
  EXPECT_THAT(digits.err, HasSubstr("was not trained on text"));
}

// Characters between words count, which no token is made of.
TEST_F(TextRuns, CountCharactersOfWords) {
  ASSERT_EQ(train({"--set", "data.tokenizer=words", "--set", "data.context=4", "--set",
                   "train.steps=2", "--set", "data.validation=20", "--set", "sparsity=null"})
                .code,
            0);
  const Config result = summary(run_dir());
  // "to be, or not to be: that is the question\n": two lines of 42 characters, but for the first
  // of twenty words, for which its line's share is taken off.
  const double characters = 84.0 - 4.2;
  EXPECT_NEAR(result.required<double>("bits_per_character"),
              result.required<double>("validation_loss") * 19.0 / characters / std::log(2.0), 1e-9);
  EXPECT_EQ(result.required<double>("validation_unknown_tokens"), 0.0);
}

// A vocabulary that lacks most words has few bits to tell: the fraction of [UNK] stands beside
// them.
TEST_F(TextRuns, TellHowManyWordsAreUnknown) {
  const Ended trained =
      train({"--set", "data.tokenizer=words", "--set", "data.max_size=4", "--set", "data.context=4",
             "--set", "train.steps=2", "--set", "data.validation=20", "--set", "sparsity=null"});
  ASSERT_EQ(trained.code, 0) << trained.err;
  // Of the nineteen words behind the first of two lines "to be, or not to be: that is the
  // question", the two most frequent of the text are known.
  const auto share = summary(run_dir()).required<double>("validation_unknown_tokens");
  EXPECT_GT(share, 0.3);
  EXPECT_LT(share, 1.0);
  EXPECT_NEAR(share * 19.0, std::round(share * 19.0), 1e-9);
  EXPECT_THAT(trained.out, HasSubstr(" % of the tokens [UNK]"));
  const Ended evaluated = run_lacuna({"eval", run_dir()});
  EXPECT_THAT(evaluated.out, HasSubstr(" bits per character, "));
  EXPECT_THAT(evaluated.out, HasSubstr(" % of the tokens [UNK]"));
  const Ended characters =
      run_lacuna({"train", config(), "--run-dir", run_dir("characters"), "--set", "train.steps=2"});
  EXPECT_THAT(characters.out, Not(HasSubstr("[UNK]")));
}

// Words have no line's end to begin after.
TEST_F(TextRuns, GoOnFromNothing) {
  for (const char* tokenizer : {"words", "characters"}) {
    const std::string name = tokenizer;
    const Ended trained = train({"--set", "data.tokenizer=" + name, "--set", "data.context=4",
                                 "--set", "train.steps=2", "--set", "sparsity=null"},
                                name);
    ASSERT_EQ(trained.code, 0) << trained.err;
    const Ended generated = run_lacuna({"generate", run_dir(name), "--tokens", "6"});
    ASSERT_EQ(generated.code, 0) << generated.err;
    EXPECT_EQ(generated.out.front() == '\n', name == "characters");
    EXPECT_NE(generated.out.front(), ' ');
    EXPECT_GT(generated.out.size(), 6u);
  }
}

TEST_F(TextRuns, SayWhatCanBeDoneNext) {
  const std::string next = "lacuna generate " + run_dir("ignoring") + " --prompt TEXT";
  EXPECT_THAT(
      train({"--set", "loss={ignore_index: 0}", "--set", "train.steps=2", "--set", "sparsity=null"},
            "ignoring")
          .out,
      HasSubstr(next));
  std::string tokens;
  for (int i = 0; i < 400; ++i) tokens += std::string(1, static_cast<char>(i % 7)) + '\0';
  write_text(folder_ / "train.bin", tokens);
  const Ended unnamed = train(
      {"--set", "data={type: tokens, dir: " + folder_.path() + ", vocab_size: 7, context: 16}",
       "--set", "train.steps=2", "--set", "train.eval_every=null", "--set", "sparsity=null"},
      "unnamed");
  ASSERT_EQ(unnamed.code, 0) << unnamed.err;
  EXPECT_THAT(unnamed.out, HasSubstr("lacuna eval " + run_dir("unnamed") + "\n"));
}

TEST_F(TextRuns, AreEvaluatedWithoutSmoothing) {
  const Ended trained = train(
      {"--set", "loss={type: cross_entropy, label_smoothing: 0.3}", "--set", "train.steps=10"});
  ASSERT_EQ(trained.code, 0) << trained.err;
  const Ended plain = run_lacuna({"eval", run_dir(), "--json", "--set", "loss=cross_entropy"});
  ASSERT_EQ(plain.code, 0) << plain.err;
  EXPECT_EQ(parse_yaml(plain.out, "out").at("splits").items()[0].at("loss").text(),
            summary(run_dir()).at("validation_loss").text());

  ASSERT_EQ(
      train({"--set", "loss=cross_entropy", "--set", "train.steps=2", "--set", "sparsity=null"},
            "named")
          .code,
      0);
  const Ended useless = run_lacuna({"eval", run_dir("named"), "--set", "loss.label_smoothing=0.1"});
  EXPECT_EQ(useless.code, 0) << useless.err;
  EXPECT_THAT(useless.err, HasSubstr("loss.label_smoothing=0.1 changes nothing in an evaluation"));
  const Ended refused = run_lacuna({"eval", run_dir("named"), "--set", "loss.label_smoothing=2"});
  EXPECT_EQ(refused.code, 2);
  EXPECT_THAT(refused.err, HasSubstr("error: --set loss.label_smoothing=2: loss.label_smoothing: "
                                     "expected a number in [0, 1)"));
}

constexpr const char* kMasked = R"(
data: {type: text, path: PATH, tokenizer: words, context: 10, mask_fraction: 0.15, validation: 0.2}
model: {type: bert, head: masked_lm, hidden_size: 16, num_hidden_layers: 1, num_attention_heads: 2,
        intermediate_size: 32, max_position_embeddings: 10, hidden_dropout_prob: 0.1}
optimizer: {type: adamw, lr: 0.01}
sparsity: {sparsity: 0.5, layout: csr, param_filter: ["bert.encoder.*.dense.weight"]}
train: {steps: 24, batch_size: 16, log_every: 4, eval_every: 8, checkpoint: {every: 5}, threads: 1}
)";

TEST_F(TextRuns, LearnToTellHiddenWordsAndFillGaps) {
  use(kMasked, "play.txt");
  const Ended trained =
      train({"--set", "train.steps=300", "--set", "model.initializer_range=0.2", "--set",
             "model.hidden_dropout_prob=0.0", "--set", "model.attention_probs_dropout_prob=0.0"});
  ASSERT_EQ(trained.code, 0) << trained.err;
  const Config result = summary(run_dir());
  const auto loss = result.required<double>("validation_loss");
  EXPECT_LT(loss, 1.1);  // of 11 words: 2.4 at first, 2.2 by how frequent they are
  EXPECT_GT(result.required<double>("validation_accuracy"), 0.45);
  EXPECT_NEAR(result.required<double>("validation_perplexity"), std::exp(loss), 1e-9);
  EXPECT_FALSE(result.has("bits_per_character"));
  const StateDict state = read_checkpoint(checkpoint(300)).state;
  EXPECT_TRUE(state.contains("model/cls.predictions.transform.dense.weight/values") ||
              state.contains("model/cls.predictions.transform.dense.weight"));

  const Ended evaluated = run_lacuna({"eval", run_dir(), "--json"});
  ASSERT_EQ(evaluated.code, 0) << evaluated.err;
  EXPECT_EQ(parse_yaml(evaluated.out, "out").at("splits").items()[0].at("loss").text(),
            result.at("validation_loss").text());

  write_text(folder_ / "gaps.txt", "to be, or [MASK] to be:\r\n[MASK] is the [MASK]\n");
  const Ended filled =
      run_lacuna({"predict", run_dir(), folder_ / "gaps.txt", "--out", folder_ / "out.csv"});
  ASSERT_EQ(filled.code, 0) << filled.err;
  const std::string table = read_text(folder_ / "out.csv");
  EXPECT_THAT(table, StartsWith("line,mask,token,probability\n1,1,\"not\",0."));
  EXPECT_THAT(table, HasSubstr("\n2,1,\""));
  EXPECT_THAT(table, HasSubstr("\n2,2,\""));
  EXPECT_EQ(std::count(table.begin(), table.end(), '\n'), 4);

  const auto refused = [&](const std::string& text, const std::string& message) {
    write_text(folder_ / "gaps.txt", text);
    const Ended ended =
        run_lacuna({"predict", run_dir(), folder_ / "gaps.txt", "--out", folder_ / "out.csv"});
    EXPECT_NE(ended.code, 0);
    EXPECT_THAT(ended.err, HasSubstr(message));
  };
  refused("to [MASK]\nor not\n", "gaps.txt:2: there is no [MASK] to fill");
  refused("to be to be to be to be to be to [MASK]\n",
          "gaps.txt:1: the line has 12 tokens, and the model was trained on 10");
  const Ended generated = run_lacuna({"generate", run_dir(), "--prompt", "to be"});
  EXPECT_EQ(generated.code, 1);
  EXPECT_THAT(generated.err, HasSubstr("use `lacuna predict` to fill gaps"));
}

TEST_F(TextRuns, HideTheSameTokensOnAnyThreadsAndAfterAResume) {
  use(kMasked, "play.txt");
  ASSERT_EQ(train({}, "whole").code, 0);
  ASSERT_EQ(
      train({"--set", "train.steps=13", "--set", "train.threads=2", "--set", "train.prefetch=0"},
            "part")
          .code,
      0);
  expect_part_becomes_whole();
}

constexpr const char* kClassifier = R"(
data: {type: labelled_text, train: PATH, tokenizer: words, max_length: 12, validation: 20}
model: {type: bert, hidden_size: 16, num_hidden_layers: 1, num_attention_heads: 2, intermediate_size: 32,
        max_position_embeddings: 12, hidden_dropout_prob: 0.0, attention_probs_dropout_prob: 0.0, pooling: mean}
optimizer: {type: adamw, lr: 0.01}
sparsity: {sparsity: 0.5, layout: csr, param_filter: ["bert.encoder.*.dense.weight"]}
train: {epochs: 4, batch_size: 10, threads: 1}
)";

TEST_F(TextRuns, ClassifySentencesAndPredictTheirClasses) {
  std::string lines;
  for (int i = 0; i < 120; ++i) {
    const std::string filler = i % 3 == 0 ? " a film" : i % 3 == 1 ? " this long film of mine" : "";
    lines += i % 2 == 0 ? "1 good" + filler + " fine\n" : "0 bad" + filler + " dull\n";
  }
  write_text(folder_ / "train.txt", lines);
  use(kClassifier, "train.txt");
  const Ended trained = train();
  ASSERT_EQ(trained.code, 0) << trained.err;
  EXPECT_GT(summary(run_dir()).required<double>("validation_accuracy"), 0.95);

  write_text(folder_ / "new.txt", "bad film\ngood film of mine\nwhat a dull one\r\n");
  const Ended predicted =
      run_lacuna({"predict", run_dir(), folder_ / "new.txt", "--out", folder_ / "out.csv"});
  ASSERT_EQ(predicted.code, 0) << predicted.err;
  std::string header;
  const auto rows = read_rows(folder_ / "out.csv", &header);
  EXPECT_EQ(header, "class,p0,p1");
  ASSERT_EQ(rows.size(), 3u);
  EXPECT_EQ(rows[0][0], 0.0);
  EXPECT_EQ(rows[1][0], 1.0);
  EXPECT_EQ(rows[2][0], 0.0);

  write_text(folder_ / "gap.txt", "bad film\n\ngood film\n");
  const Ended refused =
      run_lacuna({"predict", run_dir(), folder_ / "gap.txt", "--out", folder_ / "out.csv"});
  EXPECT_THAT(refused.err, HasSubstr("gap.txt:2: there is no sentence"));
}

}  // namespace
}  // namespace lacuna::text_runs_test
