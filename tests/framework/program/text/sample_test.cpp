// train.sample: a text at each evaluation, of which the run keeps no trace but the text.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "framework/program/runs.h"
#include "framework/program/text/play.h"

namespace lacuna::sample_test {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;
using testing::StartsWith;

class TrainSample : public RunFixture {
 protected:
  void SetUp() override {
    write_text(folder_ / "play.txt", play());
    write_text(config(),
               "data: {type: text, path: " + (folder_ / "play.txt") +
                   ", context: 8, validation: 0.2}\n"
                   "model: {type: gpt2, n_layer: 1, n_head: 2, n_embd: 8, n_positions: 8, "
                   "resid_pdrop: 0.2}\n"
                   "optimizer: {type: adamw, lr: 0.01}\n"
                   "train: {steps: 12, eval_every: 4, batch_size: 8, threads: 1, "
                   "ema: 0.9}\n");
  }
  std::vector<std::string> samples(const std::string& name = "run") const {
    std::vector<std::string> texts;
    for (const Config& event : events(run_dir(name))) {
      if (event.has("sample")) texts.push_back(event.at("sample").text());
    }
    return texts;
  }
  const std::vector<std::string> sample_{"--set", "train.sample={prompt: 'to be', tokens: 12}"};
};

TEST_F(TrainSample, GoesOnWithThePromptAtEachEvaluation) {
  const Ended ended = train(sample_);
  ASSERT_EQ(ended.code, 0) << ended.err;
  ASSERT_THAT(samples(), SizeIs(3));
  for (const std::string& text : samples()) {
    EXPECT_THAT(text, AllOf(StartsWith("to be"), SizeIs(17)));
  }
  EXPECT_THAT(ended.err, AllOf(HasSubstr("  sample\n"), HasSubstr("\n  | to be")));
}

TEST_F(TrainSample, ChangesNoBits) {
  ASSERT_EQ(train(sample_).code, 0);
  ASSERT_EQ(train({}, "plain").code, 0);
  EXPECT_THAT(differences(read_checkpoint(checkpoint(12)).state,
                          read_checkpoint(checkpoint(12, "plain")).state),
              IsEmpty());
}

TEST_F(TrainSample, IsTheSameOfAResumedRun) {
  ASSERT_EQ(train(sample_, "whole").code, 0);
  ASSERT_EQ(train(sample_, "run", {.fault = "step.between:7:interrupt"}).code, 130);
  ASSERT_EQ(train({"--resume"}).code, 0);
  EXPECT_EQ(samples(), samples("whole"));
}

TEST_F(TrainSample, MayChangeWhenARunGoesOn) {
  ASSERT_EQ(train({}, "run", {.fault = "step.between:7:interrupt"}).code, 130);
  const Ended ended = train({"--resume", "--set", "train.sample={prompt: 'that', tokens: 3}"});
  ASSERT_EQ(ended.code, 0) << ended.err;
  ASSERT_THAT(samples(), SizeIs(2));
  EXPECT_THAT(samples().front(), StartsWith("that"));
}

TEST_F(TrainSample, IsRefusedWhereThereIsNothingToGoOnWith) {
  const auto refuses = [&](const std::string& sample, const std::string& message) {
    const Ended ended = train({"--set", "train.sample=" + sample});
    EXPECT_EQ(ended.code, 2) << sample;
    EXPECT_THAT(ended.err, HasSubstr(message)) << sample;
  };
  refuses("{tokens: 5}", "train.sample");
  refuses("{prompt: ''}", "a text that is not empty");
  refuses("{prompt: to, tokens: 0}", "an integer from 1 to 10000");
  refuses("[to be]", "a map with prompt and tokens");
  refuses("{prompt: to, token: 5}", "unknown key 'token'");
  write_text(config(), kTinyRun);
  refuses("{prompt: to}", "this is for language models");
}

}  // namespace
}  // namespace lacuna::sample_test
