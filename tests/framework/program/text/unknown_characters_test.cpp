// Characters that a text lacks: [UNK] in runs of today, and none in those of earlier versions.
#include <gmock/gmock.h>

#include <string>
#include <vector>

#include "framework/program/runs.h"
#include "framework/program/text/play.h"

namespace lacuna::unknown_characters_test {
namespace {

using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

class UnknownCharacters : public RunFixture {
 protected:
  void SetUp() override {
    write_text(folder_ / "play.txt", play());
    write_text(config(), "data: {type: text, path: " + (folder_ / "play.txt") +
                             ", tokenizer: characters, context: 16, validation: 0.2}\n"
                             "model: {type: gpt2, n_layer: 1, n_head: 2, n_embd: 16, n_positions: "
                             "16}\n"
                             "optimizer: {type: adamw, lr: 0.01}\n"
                             "train: {steps: 24, batch_size: 8, threads: 1}\n");
  }
};

// Where a run has one, what stands for other characters is neither said nor met in training.
TEST_F(UnknownCharacters, AreNotSaidUnlessAsked) {
  write_text(folder_ / "other.txt", "té be, or not té be: that is the question\n");
  const std::string test = "data.test=" + (folder_ / "other.txt");
  ASSERT_EQ(train({"--set", "train.steps=3", "--set", test}).code, 0);
  const Config result = summary(run_dir());
  EXPECT_EQ(result.required<double>("train_unknown_tokens"), 0.0);
  EXPECT_EQ(result.required<double>("validation_unknown_tokens"), 0.0);
  // Two of the 41 characters behind the first.
  EXPECT_NEAR(result.required<double>("test_unknown_tokens"), 2.0 / 41.0, 1e-12);
  const Ended planned = run_lacuna({"plan", config(), "--set", test, "--set", "train.steps=3"});
  EXPECT_THAT(planned.out,
              HasSubstr("tokens that are [UNK]: train 0 %, validation 0 %, test 4.9 %\n"));
  const Ended json =
      run_lacuna({"plan", config(), "--json", "--set", test, "--set", "train.steps=3"});
  EXPECT_NEAR(parse_yaml(json.out, "p").at("unknown_tokens").required<double>("test"), 2.0 / 41.0,
              1e-12);
  // Of a model that is hardly trained all tokens are about as likely.
  const auto generate = [&](const std::vector<std::string>& more) {
    std::vector<std::string> command{"generate", run_dir(), "--prompt", "to", "--tokens", "400"};
    command.insert(command.end(), more.begin(), more.end());
    return run_lacuna(command);
  };
  EXPECT_THAT(generate({}).out, Not(HasSubstr("[UNK]")));
  EXPECT_THAT(generate({"--unk"}).out, HasSubstr("[UNK]"));
  const Ended unknown = run_lacuna({"generate", run_dir(), "--prompt", "té", "--tokens", "4"});
  EXPECT_EQ(unknown.code, 0) << unknown.err;
  EXPECT_THAT(unknown.out, StartsWith("té"));
  EXPECT_THAT(unknown.err, HasSubstr("the vocabulary lacks 1 of the 2 tokens of --prompt"));
}

// Runs of earlier versions have a configuration without the key, and a vocabulary without [UNK].
TEST_F(UnknownCharacters, AreErrorsInRunsOfEarlierVersions) {
  ASSERT_EQ(train({"--set", "data.unk=false"}, "whole").code, 0);
  ASSERT_EQ(train({"--set", "data.unk=false", "--set", "train.steps=13"}, "part").code, 0);
  const auto without_key = [](std::string yaml) {
    const std::string line = "  unk: false\n";
    const size_t at = yaml.find(line);
    EXPECT_NE(at, std::string::npos);
    return at == std::string::npos ? yaml : yaml.erase(at, line.size());
  };
  write_text(run_dir("part") + "/config.yaml",
             without_key(read_text(run_dir("part") + "/config.yaml")));
  Checkpoint saved = read_checkpoint(checkpoint(13, "part"));
  saved.config_yaml = without_key(saved.config_yaml);
  write_checkpoint(checkpoint(13, "part"), saved);
  const Ended resumed =
      run_lacuna({"train", "--resume", "--run-dir", run_dir("part"), "--set", "train.steps=24"});
  ASSERT_EQ(resumed.code, 0) << resumed.err;
  EXPECT_THAT(differences(read_checkpoint(checkpoint(24, "part")).state,
                          read_checkpoint(checkpoint(24, "whole")).state),
              testing::IsEmpty());
  EXPECT_FALSE(summary(run_dir("part")).has("train_unknown_tokens"));
  EXPECT_EQ(load_yaml(run_dir("whole") + "/config.yaml").peek("model.vocab_size").as<int64_t>(),
            16);
  const Ended refused = run_lacuna({"generate", run_dir("part"), "--prompt", "té"});
  EXPECT_EQ(refused.code, 1);
  EXPECT_THAT(refused.err, HasSubstr("the character 'é' (U+00E9) is not in the vocabulary"));
}

}  // namespace
}  // namespace lacuna::unknown_characters_test
