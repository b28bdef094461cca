// What can only be a mistake in a run on text is told before its first step, by `train` and by
// `plan`, with the line.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "framework/program/runs.h"
#include "framework/program/text/play.h"

namespace lacuna::text_mistakes_test {
namespace {

using testing::HasSubstr;

constexpr const char* kTraining = R"(
optimizer: {type: adamw, lr: 0.01}
train: {steps: 3, batch_size: 8, threads: 1}
)";
constexpr const char* kText = "data: {type: text, path: PATH, context: 8, validation: 0.2MORE}\n";
constexpr const char* kBert =
    "{type: bert, hidden_size: 8, num_hidden_layers: 1, num_attention_heads: 2,\n"
    "  intermediate_size: 8, max_position_embeddings: 8";
constexpr const char* kGpt = "{type: gpt2, n_layer: 1, n_head: 2, n_embd: 8, n_positions: 8}";

class TextMistakes : public RunFixture {
 protected:
  void SetUp() override {
    write_text(folder_ / "play.txt", play());
    std::string lines;
    for (int i = 0; i < 40; ++i) {
      lines += i % 2 == 0 ? "1 a good film\n" : "0 bad and much too long for me\n";
    }
    write_text(folder_ / "lines.txt", lines);
  }
  // A language model of play.txt, or of another file.
  void use_text(const std::string& more, const std::string& model,
                const std::string& file = "play.txt") const {
    std::string data = kText;
    data.replace(data.find("PATH"), 4, folder_ / file);
    data.replace(data.find("MORE"), 4, more);
    write_text(config(), data + "model: " + model + kTraining);
  }
  // A classifier of sentences.
  void use_sentences(const std::string& keys, const std::string& model) const {
    write_text(config(), "data: {type: labelled_text, train: " + (folder_ / "lines.txt") +
                             ", max_length: 8" + keys + "}\nmodel: " + model + kTraining);
  }
  void expect_refused(const std::string& message, int code = 2) const {
    for (const char* command : {"plan", "train"}) {
      const Ended ended = run_lacuna({command, config()});
      EXPECT_EQ(ended.code, code) << command;
      EXPECT_THAT(ended.err, HasSubstr(message)) << command;
    }
  }
  void expect_planned() const {
    const Ended ended = run_lacuna({"plan", config()});
    EXPECT_EQ(ended.code, 0) << ended.err;
  }
};

TEST_F(TextMistakes, NextTokensThatAttentionSees) {
  const std::string bert = std::string(kBert) + ", head: masked_lm}";
  use_text("", bert);
  expect_refused(
      "layer 'bert.encoder.layer.0.attention1' (attention) is not causal, but the labels are the "
      "next tokens");
  expect_refused("within the preset 'bert' at " + config() + ":2:8");
  use_text(", tokenizer: words, mask_fraction: 0.15", bert);
  expect_planned();
  const std::string layers =
      "\n  - {type: token_embedding, features: 12}\n  - {type: attention, heads: 2CAUSAL}\n"
      "  - {type: linear}\n";
  std::string own = layers;
  use_text("", own.replace(own.find("CAUSAL"), 6, ""));
  expect_refused(config() + ":4:5: model.1: layer 'attention1' (attention) is not causal");
  own = layers;
  use_text("", own.replace(own.find("CAUSAL"), 6, ", causal: true"));
  expect_planned();
}

TEST_F(TextMistakes, NextTokensThatOtherLayersSee) {
  const auto with = [&](const std::string& layer) {
    use_text(
        "", "\n  - {type: token_embedding, features: 12}\n  - " + layer + "\n  - {type: linear}\n");
  };
  with("{type: conv1d, out_channels: 8, kernel: 1}");  // the tokens are its channels
  expect_refused(config() +
                 ":4:5: model.1: layer 'conv1d1' (conv1d) mixes tokens: outputs of a token depend "
                 "on the tokens after it");
  with("{type: residual, layers: [{type: group_norm, groups: 1}]}");
  expect_refused("model.1: layer 'residual1' (residual) mixes tokens");
  with("layer_norm");
  expect_planned();
}

TEST_F(TextMistakes, HiddenTokensThatAreToldByWhatStandsBeforeAlone) {
  use_text(", tokenizer: words, mask_fraction: 0.15", kGpt);
  expect_refused(
      "layer 'transformer.h.0.attention1' (attention) is causal, like all attention of the model, "
      "so tokens hidden by data.mask_fraction would be predicted only from those before them");
  use_text(", tokenizer: words", kGpt);
  expect_planned();
}

TEST_F(TextMistakes, ATeacherThatSeesTheNextToken) {
  write_text(folder_ / "vocab.txt",
             "[PAD]\n[UNK]\n[MASK]\nto\nbe\n,\nor\nnot\n:\nthat\nis\nthe\nquestion\n");
  const std::string tokens = ", tokenizer: wordpiece, vocab: " + (folder_ / "vocab.txt");
  use_text(tokens + ", mask_fraction: 0.15", std::string(kBert) + ", head: masked_lm}");
  ASSERT_EQ(train({}, "teacher").code, 0);
  const auto taught_by = [&](const std::string& teacher) {
    use_text(tokens, std::string(kGpt) + "\nloss: {type: distillation, teacher: " + teacher + "}");
  };
  taught_by(run_dir("teacher"));
  expect_refused(
      "loss.teacher: the teacher's layer 'bert.encoder.layer.0.attention1' (attention) "
      "is not causal");
  taught_by("nowhere");
  expect_refused("loss.teacher: cannot read the checkpoint 'nowhere'", 1);
  expect_refused("error: " + config() + ":3:", 1);
}

TEST_F(TextMistakes, LayersThatTakeSentencesOfOneLength) {
  const std::string trunk = "\n  - {type: token_embedding, features: 6}\n";
  const auto refuses = [&](const std::string& layers, const std::string& message) {
    use_sentences("", trunk + layers);
    expect_refused(message);
  };
  refuses("  - flatten\n  - {type: linear}\n",
          config() +
              ":4:5: model.1: layer 'flatten1' (flatten) gives shape [18] for a sentence of 3 "
              "tokens, and [48] for one of 8");
  refuses("  - global_average_pool\n  - {type: linear}\n",
          config() + ":4:5: model.1: layer 'global_average_pool1' (global_average_pool) gives");
  refuses("  - batch_norm\n  - mean_pool\n  - {type: linear}\n",
          config() + ":4:5: model.1: layer 'batch_norm1' (batch_norm)");
  refuses(
      "  - {type: conv1d, out_channels: 4, kernel: 3}\n  - global_average_pool\n"
      "  - {type: linear}\n",
      config() + ":4:5: model.1: layer 'conv1d1' (conv1d)");
  refuses("  - {type: select_token, index: 5}\n  - {type: linear}\n",
          config() +
              ":4:5: model.1: layer 'select_token1' (select_token): there is no token 5 in "
              "shape [3, 6]");
  refuses(
      "  - class_token\n  - {type: attention, heads: 1}\n  - {type: select_token}\n"
      "  - {type: linear}\n",
      config() +
          ":5:5: model.2: layer 'attention1' (attention): sequences of shape [1, 4, 6] "
          "need a mask of shape [1, 4], and 'attention_mask' has [1, 3]");
  refuses("  - {type: residual, layers: [batch_norm]}\n  - mean_pool\n  - {type: linear}\n",
          "layer 'batch_norm1' (batch_norm)");
  use_sentences("", trunk + "  - {type: select_token, index: -3}\n  - {type: linear}\n");
  const Ended trained = train();
  EXPECT_EQ(trained.code, 0) << trained.err;
}

TEST_F(TextMistakes, TypesOfSentencesThatHaveNoVector) {
  write_text(folder_ / "lines.txt", "a,b,label\nit is,it was,1\nso,so,0\n");
  use_sentences(", text_column: [a, b], label_column: label",
                std::string(kBert) + ", type_vocab_size: 1}");
  expect_refused(
      "layer 'bert.embeddings.token_type_embeddings' (token_type_embedding) has types: "
      "1, and the data's 'token_type_ids' go up to 1; give type_vocab_size: 2");
}

TEST_F(TextMistakes, ColumnsThatAreTwoThings) {
  write_text(folder_ / "lines.txt", "a,b,label\nit is,it was,1\nso,so,0\n");
  const std::string bert = std::string(kBert) + "}";
  use_sentences(", text_column: label, label_column: label", bert);
  expect_refused("data.label_column: 'label' is the column of the sentence (text_column)");
  use_sentences(", text_column: [a, a], label_column: label", bert);
  expect_refused("data.text_column: both sentences are the column 'a'; name two");
}

TEST_F(TextMistakes, ATestSplitThatIsNoFraction) {
  use_sentences(", test: 1.2", std::string(kBert) + "}");
  expect_refused("data.test: expected");
}

TEST_F(TextMistakes, AMaskThatTheTextHas) {
  const std::string bert = std::string(kBert) + ", head: masked_lm}";
  use_text(", mask_fraction: 0.15, mask_token: \"q\"", bert);
  expect_refused(
      "play.txt: the training split: token 33: the token 'q' is in the text, but it is the mask",
      1);
  use_text(", mask_fraction: 0.15, mask_token: \"#\"", bert);
  expect_planned();
  write_text(folder_ / "lines.txt", "1 a good film\n0 a [MASK] film\n");
  use_sentences(", lower_case: false, mask_fraction: 0.3", bert);
  expect_refused("lines.txt:2: the token '[MASK]' is in the text", 1);
  use_sentences(", lower_case: false, mask_fraction: 0.3, mask_token: \"[HIDDEN]\"", bert);
  expect_planned();
}

TEST_F(TextMistakes, TextThatIsNone) {
  write_text(folder_ / "white.txt", " \n\n \t\n");
  for (const char* tokenizer : {", tokenizer: words", ", tokenizer: wordpiece, vocab: VOCAB"}) {
    std::string more = tokenizer;
    const size_t at = more.find("VOCAB");
    if (at != std::string::npos) more.replace(at, 5, folder_ / "vocab.txt");
    write_text(folder_ / "vocab.txt", "[PAD]\n[UNK]\nto\n");
    use_text(more, kGpt, "white.txt");
    expect_refused("white.txt: the text is only white space, so it has no tokens", 1);
  }
  write_text(folder_ / "wide.txt", std::string("\xff\xfe"
                                               "a\0b\0",
                                               6));
  use_text("", kGpt, "wide.txt");
  expect_refused("wide.txt: begins with the byte order mark of UTF-16; convert it", 1);
}

TEST_F(TextMistakes, AVocabularyThatIsDamaged) {
  write_text(folder_ / "vocab.txt", "[PAD]\n[UNK]\nto\nb\xff\n");
  use_text(", tokenizer: wordpiece, vocab: " + (folder_ / "vocab.txt"), kGpt);
  expect_refused("vocab.txt: line 4: byte 2 of the line, 0xff, is not UTF-8", 1);
  write_text(folder_ / "vocab.json", "{\"a\": 0, \"b\": -1}");
  write_text(folder_ / "merges.txt", "a b\n");
  use_text(", tokenizer: bpe, vocab: " + (folder_ / "vocab.json") +
               ", merges: " + (folder_ / "merges.txt"),
           kGpt);
  expect_refused(
      "vocab.json: 'b': expected the token's id, a whole number from 0, found the number -1", 1);
}

// A mark that editors put there is no character of the text.
TEST_F(TextMistakes, ByteOrderMarksAreNone) {
  const std::string mark = "\xEF\xBB\xBF";
  write_text(folder_ / "play.txt", mark + read_text(folder_ / "play.txt"));
  use_text("", kGpt);
  ASSERT_EQ(train().code, 0);
  EXPECT_EQ(load_yaml(run_dir() + "/config.yaml").at("model").required<int64_t>("vocab_size"), 17);
  write_text(folder_ / "lines.txt", mark + read_text(folder_ / "lines.txt"));
  use_sentences("", std::string(kBert) + "}");
  const Ended sentences = train({}, "sentences");
  EXPECT_EQ(sentences.code, 0) << sentences.err;
  write_text(folder_ / "new.txt", mark + "good film\n");
  const std::vector<std::string> predict = {"predict", run_dir("sentences"), folder_ / "new.txt",
                                            "--out", folder_ / "out.csv"};
  ASSERT_EQ(run_lacuna(predict).code, 0);
  const std::string marked = read_text(folder_ / "out.csv");
  write_text(folder_ / "new.txt", "good film\n");
  ASSERT_EQ(run_lacuna(predict).code, 0);
  EXPECT_EQ(read_text(folder_ / "out.csv"), marked);
}

}  // namespace
}  // namespace lacuna::text_mistakes_test
