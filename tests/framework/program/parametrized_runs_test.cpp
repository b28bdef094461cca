// Runs with `parametrization` and `model.widen`: planned, trained, resumed, exported, loaded.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "framework/program/runs.h"

namespace lacuna::parametrized_runs_test {
namespace {

using testing::HasSubstr;

class ParametrizedRuns : public RunFixture {
 protected:
  ParametrizedRuns() {
    std::string text;
    for (int i = 0; i < 60; ++i) text += "to be or not to be, that is the question\n";
    write_text(folder_ / "play.txt", text);
    write_text(config(), "data: {type: text, path: " + (folder_ / "play.txt") +
                             ", context: 8, stride: 8, validation: 0.1, test: 0.1}\n"
                             "model: {type: gpt2, n_embd: 32, n_layer: 1, n_head: 2, resid_pdrop: "
                             "0, embd_pdrop: 0, attn_pdrop: 0, widen: flops}\n"
                             "optimizer: {type: adamw, lr: 0.003}\n"
                             "sparsity: {algorithm: set, sparsity: 0.8, update: {freq: 2}}\n"
                             "parametrization: {type: sparse_mup, base_width: 16}\n"
                             "train: {steps: 8, batch_size: 4, threads: 1, checkpoint: {every: 4, "
                             "keep_last: 3}}\n");
  }
};

TEST_F(ParametrizedRuns, ArePlannedWithTheirFactorsAndNextToTheDenseModel) {
  const Ended table = run_lacuna({"plan", config()});
  ASSERT_EQ(table.code, 0) << table.err;
  for (const char* words : {"widened: model.n_embd 32 → ", "first values", "last norm", "equal  ",
                            "\ndense ", "\nflops ", "\nparameters "}) {
    EXPECT_THAT(table.out, HasSubstr(words));
  }
  const Ended ended = run_lacuna({"plan", config(), "--json"});
  const Config json = parse_yaml(ended.out, "plan");
  bool is_there = false;
  for (const Config& row : json.at("parametrization").items()) {
    if (row.at("parameter").text() != "transformer.h.0.mlp.c_fc.weight") continue;
    is_there = true;
    EXPECT_EQ(row.at("role").text(), "hidden");
    const double width = row.required<double>("inputs"), density = row.required<double>("density");
    EXPECT_NEAR(density, 0.2, 0.001);
    EXPECT_DOUBLE_EQ(row.required<double>("lr"), 1.0 / (width * density));
  }
  EXPECT_TRUE(is_there);
  const std::vector<Config> models = json.at("widen").items();
  ASSERT_EQ(models.size(), 3u);
  EXPECT_EQ(models[0].at("widths").text(), "as written");
  EXPECT_EQ(models[1].at("inference_flops").text(), json.at("inference_flops").text());
  EXPECT_EQ(models[1].at("nonzeros").text(), json.at("final_nnz").text());
  EXPECT_NEAR(models[2].required<double>("nonzeros") / models[0].required<double>("nonzeros"), 1.0,
              0.2);
}

TEST_F(ParametrizedRuns, GoOnAndAreReadAgain) {
  ASSERT_EQ(train({}, "whole").code, 0);
  ASSERT_EQ(train({"--set", "train.steps=4"}, "half").code, 0);
  const Ended resumed = train({"--resume", "--set", "train.steps=8"}, "half");
  ASSERT_EQ(resumed.code, 0) << resumed.err;
  EXPECT_TRUE(differences(read_checkpoint(checkpoint(4, "half")).state.below("parametrization"),
                          read_checkpoint(checkpoint(4, "whole")).state.below("parametrization"))
                  .empty());
  const Config run = load_yaml(run_dir("whole") + "/config.yaml");
  EXPECT_TRUE(run.peek("model.widen").is_null());
  const std::string scale = run.peek("model.attention_scale").text();
  ASSERT_FALSE(scale.empty());

  // A run with these weights attends with their scale; another scale is a mistake.
  std::vector<std::string> tuned{"--init-from", run_dir("whole"),
                                 "--set",       "model.widen=null",
                                 "--set",       "model.n_embd=" + run.peek("model.n_embd").text(),
                                 "--set",       "model.n_positions=8"};
  ASSERT_EQ(train(tuned, "tuned").code, 0);
  EXPECT_EQ(load_yaml(run_dir("tuned") + "/config.yaml").peek("model.attention_scale").text(),
            scale);
  tuned.insert(tuned.end(), {"--set", "model.attention_scale=0.5"});
  const Ended other = train(tuned, "other");
  EXPECT_EQ(other.code, 2);
  EXPECT_THAT(other.err, HasSubstr("model.attention_scale: the loaded weights were trained with"));

  // What is exported has the usual scale, and computes the same.
  const std::string hf = folder_ / "hf";
  ASSERT_EQ(run_lacuna({"export", run_dir("whole"), "--format", "hf", "--out", hf}).code, 0);
  const Ended imported = run_lacuna({"import", hf, "--config", config(), "--out",
                                     run_dir("imported"), "--set", "model={from_hf: " + hf + "}"});
  ASSERT_EQ(imported.code, 0) << imported.err;
  const auto loss = [&](const std::string& name) {
    const Ended ended = run_lacuna({"eval", run_dir(name), "--json"});
    EXPECT_EQ(ended.code, 0) << ended.err;
    return parse_yaml(ended.out, "eval").at("splits").items().at(0).required<double>("loss");
  };
  EXPECT_NEAR(loss("imported"), loss("whole"), 1e-5);
  EXPECT_TRUE(
      load_yaml(run_dir("imported") + "/config.yaml").peek("model.attention_scale").is_null());

  // An ONNX file has the weights as they are, and states their scale.
  const std::string onnx = folder_ / "model.onnx";
  ASSERT_EQ(run_lacuna({"export", run_dir("whole"), "--format", "onnx", "--out", onnx}).code, 0);
  tuned.resize(tuned.size() - 2);
  tuned[1] = onnx;
  ASSERT_EQ(train(tuned, "tuned_from_onnx").code, 0);
  std::vector<std::string> import{"import", onnx, "--config", config(), "--out", run_dir("onnx")};
  import.insert(import.end(), tuned.begin() + 2, tuned.end());
  const Ended from_onnx = run_lacuna(import);
  ASSERT_EQ(from_onnx.code, 0) << from_onnx.err;
  for (const char* name : {"onnx", "tuned_from_onnx"}) {
    EXPECT_EQ(load_yaml(run_dir(name) + "/config.yaml").peek("model.attention_scale").text(),
              scale);
  }
  EXPECT_EQ(loss("onnx"), loss("whole"));
}

}  // namespace
}  // namespace lacuna::parametrized_runs_test
