// `lacuna plan` foresees what `lacuna train` does: the same FLOPs, and the same refusal where there
// is too little memory.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <random>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "framework/program/runs.h"

namespace lacuna::plan_and_train_test {
namespace {

using testing::HasSubstr;

const std::vector<const char*> kFlops = {"inference_flops", "dense_inference_flops",
                                         "training_flops", "dense_training_flops"};

struct Network {
  std::string name, data, model;
};

std::vector<Network> networks(const TemporaryFolder& folder) {
  std::string text = "to be or not to be that is the question";
  for (int i = 0; i < 3; ++i) text += " " + text;
  folder.write("text.txt", text);
  folder.write("sentences.txt",
               "0 to be\n1 in the mind to suffer the slings\n0 die\n1 by opposing end them\n0 no "
               "more\n1 sleep\n0 that is the question\n1 or not\n0 to\n");
  return {
      {"table", "{type: synthetic, features: 8, classes: 3, train_size: 37, test_size: 8}",
       "[{type: linear, out_features: 16}, relu, {type: linear, out_features: 3}]"},
      {"images", "{type: colour_glyphs, train_size: 37, test_size: 8}",
       "[{type: conv2d, out_channels: 4, kernel: 3, stride: 2}, relu, {type: conv2d, out_channels: "
       "8, kernel: 3, stride: 2}, {type: batch_norm}, flatten, {type: linear, out_features: 10}]"},
      {"text",
       "{type: text, path: '" + folder / "text.txt" +
           "', tokenizer: characters, "
           "context: 8}",
       "{type: gpt2, n_embd: 8, n_layer: 1, n_head: 2, n_positions: 8}"},
      {"sentences",
       "{type: labelled_text, train: '" + folder / "sentences.txt" +
           "', tokenizer: words, cls: true, max_length: 12}",
       "{type: bert, hidden_size: 8, num_hidden_layers: 1, num_attention_heads: 2, "
       "intermediate_size: 16, max_position_embeddings: 12}"},
      {"frozen", "{type: synthetic, features: 8, classes: 3, train_size: 37, test_size: 8}",
       "[{type: linear, out_features: 16, trainable: false}, relu, {type: linear, out_features: "
       "12}, relu, {type: linear, out_features: 3}]"},
  };
}

const std::vector<const char*> kSparsities = {
    "null",
    "{algorithm: static, sparsity: 0.75, layout: csr}",
    "{algorithm: rigl, sparsity: 0.8, distribution: erk, update: {freq: 2}}",
    "{algorithm: gmp, sparsity: {type: polynomial, init: 0.1, final: 0.8, start: 0, end: 6}, "
    "update: {freq: 2}}",
    "{algorithm: acdc, sparsity: 0.5, update: {freq: 2, stop: 7}}",
    "{algorithm: snip, sparsity: 0.75, scope: layer}",
    "{algorithm: magnitude, sparsity: 0.75}",
    "{phases: [{until: 3, algorithm: dense}, {algorithm: magnitude, sparsity: 0.75}]}",
    "{phases: [{until: 3, algorithm: dense}, {until: 5, algorithm: static, sparsity: 0.5}, "
    "{algorithm: set, sparsity: 0.75, update: {freq: 1}}]}",
};

class PlanAndTrain : public RunFixture {
 protected:
  void expect_same_flops(const Network& network, const std::string& sparsity,
                         const std::string& train) {
    write_text(config(), "data: " + network.data + "\nmodel: " + network.model +
                             "\noptimizer: {type: adam}\nsparsity: " + sparsity +
                             "\ntrain: " + train + "\n");
    SCOPED_TRACE(network.name + ", " + sparsity + ", " + train);
    const Ended planned = run_lacuna({"plan", config(), "--json"});
    ASSERT_EQ(planned.code, 0) << planned.err;
    const std::string run = "run" + std::to_string(++runs_);
    const Ended trained = this->train({}, run);
    ASSERT_EQ(trained.code, 0) << trained.err;
    const Config foreseen = parse_yaml(planned.out, "plan"), done = summary(run_dir(run));
    for (const char* key : kFlops) {
      EXPECT_EQ(foreseen.required<int64_t>(key), done.required<int64_t>(key)) << key;
      EXPECT_GT(done.required<int64_t>(key), 0) << key;
    }
    EXPECT_EQ(foreseen.required<int64_t>("final_nnz"), done.required<int64_t>("nnz"));
    expect_updates(foreseen, run_dir(run));
  }

  // Each update that is planned has its event.
  static void expect_updates(const Config& foreseen, const std::string& run_dir) {
    std::set<std::pair<std::string, int64_t>> written;
    for (const Config& event : events(run_dir)) {
      if (event.at("split").text() != "update") continue;
      written.emplace(event.at("parameter").text(), event.required<int64_t>("step"));
    }
    for (const Config& planned : foreseen.at("parameters").items()) {
      for (const auto step : planned.required<std::vector<int64_t>>("update_steps")) {
        const std::string name = planned.at("parameter").text();
        EXPECT_TRUE(written.contains({name, step})) << name << " at step " << step;
      }
    }
  }

 private:
  int runs_ = 0;
};

// Nine in an epoch: its last batch is smaller, and the run ends within one.
TEST_F(PlanAndTrain, CountTheSameFlops) {
  std::mt19937 random(7);
  for (const Network& network : networks(folder_)) {
    for (const char* sparsity : kSparsities) {
      std::string train = "{threads: 1, steps: 8, batch_size: " + std::to_string(2 + random() % 3);
      train += random() % 2 == 0 ? ", accumulate: 2" : "";
      train += random() % 2 == 0 ? ", drop_last: true" : "";
      train += random() % 3 == 0 ? ", shards: 2" : "";
      expect_same_flops(network, sparsity, train + "}");
    }
  }
}

TEST_F(PlanAndTrain, MeasureATransformersWeightsWithItsTokens) {
  const Network network = networks(folder_)[2];
  write_text(config(), "data: " + network.data + "\nmodel: " + network.model +
                           "\noptimizer: {type: adam}\nsparsity: 0.5\ntrain: {steps: 1, "
                           "batch_size: 3, threads: 1, shards: 0}\n");
  const ProcessOptions own_cache{
      .in_child = [cache = folder_ / "cache"] { ::setenv("LACUNA_CACHE_DIR", cache.c_str(), 1); }};
  const Ended planned = run_lacuna({"plan", config()}, own_cache);
  ASSERT_EQ(planned.code, 0) << planned.err;
  std::string costs;
  for (const auto& file : std::filesystem::directory_iterator(folder_ / "cache")) {
    costs += read_text(file.path());
  }
  EXPECT_THAT(costs, testing::AllOf(HasSubstr("8x8/24/"), HasSubstr("32x8/24/"),
                                    testing::Not(HasSubstr("x8/3/"))));
  // A run uses the limits that the plan measured.
  const Ended trained = train({}, "run", own_cache);
  ASSERT_EQ(trained.code, 0) << trained.err;
  std::string after;
  for (const auto& file : std::filesystem::directory_iterator(folder_ / "cache")) {
    after += read_text(file.path());
  }
  EXPECT_EQ(after, costs);
}

// Under 1 GiB: values that never fit, values that fit without their gradients and states, and
// sparse ones that all fit. Nothing is measured for what is refused.
TEST_F(PlanAndTrain, RefuseTheSameModelsForMemory) {
  struct Case {
    std::string model, sparsity, words;
  };
  const auto linear = [](const std::string& outputs) {
    return "[flatten, {type: linear, name: a, out_features: " + outputs +
           "}, {type: linear, out_features: 10}]";
  };
  const std::string convolutions =
      "[{type: conv2d, out_channels: 20000, kernel: 3}, relu, {type: conv2d, name: b, "
      "out_channels: 20000, kernel: 3}, global_average_pool, {type: linear, out_features: 10}]";
  const std::vector<Case> cases = {
      {linear("100000"), "null",
       "parameter 'a.weight' [100000, 3072] with 307200000 values: out of memory: 1228.8 MB"},
      {linear("100000"), "{sparsity: 0.05}", "parameter 'a.weight' [100000, 3072] with "},
      {convolutions, "null", "parameter 'b.weight' [20000, 20000, 3, 3] with 3600000000 values"},
      {convolutions, "{sparsity: 0.5}", "parameter 'b.weight' [20000, 20000, 3, 3] with "},
      {linear("25000"), "null",
       "model: out of memory: values, gradients and optimizer states of 4 parameters take 12"},
      {linear("5000"), "{sparsity: 0.9, layout: csr}", ""}};
  for (const auto& [model, sparsity, words] : cases) {
    write_text(config(), "data: {type: colour_glyphs, train_size: 4, test_size: 2}\nmodel: " +
                             model + "\noptimizer: {type: adam}\nsparsity: " + sparsity +
                             "\ntrain: {steps: 1, batch_size: 2, threads: 1, shards: 0}\n");
    SCOPED_TRACE(model + " " + sparsity);
    const std::string cache = folder_ / "cache";
    const ProcessOptions small{.max_address_bytes = int64_t{1} << 30,
                               .in_child = [&] { ::setenv("LACUNA_CACHE_DIR", cache.c_str(), 1); }};
    const Ended planned = run_lacuna({"plan", config()}, small), trained = train({}, "run", small);
    EXPECT_EQ(planned.code, words.empty() ? 0 : 1) << planned.err;
    EXPECT_EQ(trained.code, planned.code) << trained.err;
    EXPECT_EQ(std::filesystem::exists(run_dir()), words.empty());
    if (words.empty()) continue;
    EXPECT_FALSE(std::filesystem::exists(cache));
    EXPECT_EQ(planned.err, trained.err);
    EXPECT_THAT(planned.err, testing::AllOf(HasSubstr(words), HasSubstr("out of memory")));
  }
}

}  // namespace
}  // namespace lacuna::plan_and_train_test
