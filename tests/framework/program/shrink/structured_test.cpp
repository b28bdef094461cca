// `sparsity: {algorithm: structured}`: units masked while a run trains, and removed afterwards.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <string>
#include <vector>

#include "framework/program/runs.h"

namespace lacuna::structured_test {
namespace {

using testing::HasSubstr;

constexpr const char* kImages = R"(
data: {type: colour_glyphs, train_size: 64, test_size: 20}
model: {type: cifar_resnet, depth: 8, num_labels: 10}
optimizer: {type: sgd, lr: 0.05, momentum: 0.9, weight_decay: 0.001}
train: {epochs: 2, batch_size: 8, threads: 1, eval_every: null}
)";

const std::vector<std::string> kWide{
    "--set",
    "model=[flatten, {type: linear, name: fc1, out_features: 40}, relu, {type: linear, name: fc2, "
    "out_features: 10}]"};

class StructuredRun : public RunFixture {
 protected:
  Ended train_with(const std::string& keys, const std::string& name = "run",
                   std::vector<std::string> more = {}) {
    more.insert(more.end(), {"--set", "sparsity={algorithm: structured, " + keys + "}"});
    return train(more, name);
  }
  void expect_refused(const std::string& keys, const std::string& words) {
    const Ended ended = train_with(keys, "refused");
    EXPECT_EQ(ended.code, 2) << keys;
    EXPECT_THAT(ended.err, HasSubstr(words)) << keys;
    EXPECT_FALSE(std::filesystem::exists(run_dir("refused")));
  }
  StateDict state(const std::string& name = "run") const {
    return find_checkpoint(run_dir(name)).read().state;
  }
  // Of a weight's mask: rows (or columns) with an element.
  static int64_t lines(const StateDict& state, const std::string& weight, bool rows) {
    const auto& mask = state.get<ByteArray>("model/" + weight + "_mask");
    const int64_t columns = mask.shape.numel() / mask.shape[0];
    std::vector<int> has_element(static_cast<size_t>(rows ? mask.shape[0] : columns));
    for (int64_t i = 0; i < mask.shape.numel(); ++i) {
      if (mask.values[static_cast<size_t>(i)] == 0) continue;
      has_element[static_cast<size_t>(rows ? i / columns : i % columns)] = 1;
    }
    return std::count(has_element.begin(), has_element.end(), 1);
  }
  // What `shrink --method dead` makes of a run gives the same losses.
  void expect_removed_without_change(const std::string& from) {
    const Ended ended = run_lacuna({"shrink", run_dir(from), "--method", "dead", "--run-dir",
                                    run_dir(from + "-small"), "--last"});
    ASSERT_EQ(ended.code, 0) << ended.err;
    const Config report = load_yaml(run_dir(from + "-small") + "/shrink.json");
    for (const Config& before : report.at("before").at("splits").items()) {
      for (const Config& after : report.at("after").at("splits").items()) {
        if (before.peek("split").text() != after.peek("split").text()) continue;
        EXPECT_NEAR(before.required<double>("loss"), after.required<double>("loss"), 2e-5);
        EXPECT_EQ(before.required<double>("accuracy"), after.required<double>("accuracy"));
      }
    }
  }
};

TEST_F(StructuredRun, MasksWholeUnitsToTheBudgetAndShrinkRemovesThem) {
  const Ended ended = train_with("to: {flops: 0.5}, update: {freq: 2}, layout: masked");
  ASSERT_EQ(ended.code, 0) << ended.err;
  const StateDict masked = state();
  EXPECT_EQ(lines(masked, "fc1.weight", true), 6);
  EXPECT_EQ(lines(masked, "fc2.weight", false), 6);
  EXPECT_EQ(summary(run_dir()).required<double>("inference_flops"), 2.0 * 6 * (784 + 10));
  expect_removed_without_change("run");
  const Config layers = load_yaml(run_dir("run-small") + "/config.yaml").at("model").at("layers");
  EXPECT_EQ(layers.items()[1].required<int64_t>("out_features"), 6);
  const Config small = load_yaml(run_dir("run-small") + "/config.yaml");
  EXPECT_TRUE(small.get("sparsity").is_null());
  EXPECT_FALSE(state("run-small").contains("model/fc1.weight_mask"));
  const Ended on = run_lacuna({"train", "--resume", "--run-dir", run_dir("run-small")});
  EXPECT_EQ(on.code, 0) << on.err;
}

TEST_F(StructuredRun, RemovesChannelsThatResidualsShare) {
  write_text(config(), kImages);
  for (const std::string criterion : {"magnitude", "saliency"}) {
    const Ended ended =
        train_with("to: {parameters: 0.5}, update: {freq: 3}, criterion: " + criterion, criterion);
    ASSERT_EQ(ended.code, 0) << ended.err;
    const auto part = [&](const char* key) {
      const Config report = summary(run_dir(criterion));
      return report.required<double>(key) / report.required<double>("dense_" + std::string(key));
    };
    EXPECT_LT(part("inference_flops"), 0.95);
    expect_removed_without_change(criterion);
    const Config costs = load_yaml(run_dir(criterion + "-small") + "/shrink.json").at("costs");
    EXPECT_GT(costs.at("parameters").required<double>("before"),
              costs.at("parameters").required<double>("after"));
  }
}

TEST_F(StructuredRun, MasksHeadsAndFeedForwardUnits) {
  std::string sentences;
  for (int i = 0; i < 40; ++i) {
    sentences += i % 2 == 0 ? "1 a good film with a good end\n" : "0 a bad film of bad jokes\n";
  }
  write_text(folder_ / "s.txt", sentences);
  write_text(config(), R"(
data: {type: labelled_text, train: s.txt, test: s.txt, tokenizer: words, max_length: 16}
model: {type: bert, hidden_size: 16, num_hidden_layers: 1, num_attention_heads: 4, intermediate_size: 24, max_position_embeddings: 16, pooling: mean}
optimizer: {type: adamw, lr: 0.001}
train: {epochs: 3, batch_size: 8, threads: 1}
)");
  const Ended ended = train_with("sparsity: 0.5, criterion: saliency, shares: uniform");
  ASSERT_EQ(ended.code, 0) << ended.err;
  expect_removed_without_change("run");
  const std::string small = read_text(run_dir("run-small") + "/config.yaml");
  EXPECT_THAT(small, HasSubstr("heads: 2"));
  EXPECT_THAT(small, HasSubstr("out_features: 12"));
}

TEST_F(StructuredRun, MasksPartsOfTheUnitsByASchedule) {
  const Ended ended = train_with("sparsity: 0.75, update: {steps: [5, 10, 15]}, layout: masked");
  ASSERT_EQ(ended.code, 0) << ended.err;
  EXPECT_EQ(lines(state(), "fc1.weight", true), 3);
  std::vector<int64_t> counts;
  for (const Config& event : events(run_dir())) {
    if (event.peek("split").text() != "update" || event.peek("parameter").text() != "fc1.weight") {
      continue;
    }
    counts.push_back(event.required<int64_t>("nnz") / 784);
  }
  EXPECT_EQ(counts, (std::vector<int64_t>{4, 3, 3}));
}

TEST_F(StructuredRun, MasksBlocksThatLeaveMultiples) {
  const auto left = [&](const std::string& keys, const std::string& name) {
    const Ended ended =
        train_with("update: {steps: [5, 10, 15]}, layout: masked, " + keys, name, kWide);
    EXPECT_EQ(ended.code, 0) << ended.err;
    std::vector<int64_t> counts;
    for (const Config& event : events(run_dir(name))) {
      if (event.peek("split").text() == "update" && event.peek("parameter").text() == "fc1.weight")
        counts.push_back(event.required<int64_t>("nnz") / 784);
    }
    return counts;
  };
  EXPECT_EQ(left("to: {flops: 0.4}", "auto"), (std::vector<int64_t>{16, 16, 16}));
  EXPECT_EQ(left("to: {flops: 0.42}, round_to: 1", "any"), (std::vector<int64_t>{19, 16, 16}));
  EXPECT_EQ(left("sparsity: 0.55, round_to: 4", "four"), (std::vector<int64_t>{20, 16, 16}));
  const Config written = load_yaml(run_dir("auto") + "/config.yaml");
  EXPECT_EQ(written.at("sparsity").required<std::string>("round_to"), "auto");
}

TEST_F(StructuredRun, IsTheSameWithAnyNumberOfThreads) {
  for (const std::string criterion : {"saliency", "error"}) {
    for (const std::string threads : {"1", "3"}) {
      const Ended ended = train_with("to: {flops: 0.4}, update: {freq: 2}, criterion: " + criterion,
                                     criterion + threads, {"--set", "train.threads=" + threads});
      ASSERT_EQ(ended.code, 0) << ended.err;
    }
    EXPECT_EQ(differences(state(criterion + "1"), state(criterion + "3")),
              std::vector<std::string>{});
  }
}

// Of the same weights: an update after a step that changed none.
TEST_F(StructuredRun, MasksByErrorWhatShrinkRemoves) {
  write_text(config(), R"(
data: {type: glyphs, train_size: 200, test_size: 30}
model:
  - flatten
  - {type: linear, name: fc1, out_features: 24}
  - relu
  - {type: linear, name: fc2, out_features: 20}
  - relu
  - {type: linear, name: fc3, out_features: 10}
optimizer: {type: adam, lr: 0.01}
train: {steps: 20, batch_size: 20, threads: 1}
)");
  const std::string keys = "to: {flops: 0.6}, shares: uniform, calibration: 120, round_to: 1";
  ASSERT_EQ(train({}, "dense").code, 0);
  const Ended shrunk =
      run_lacuna({"shrink", run_dir("dense"), "--run-dir", run_dir("small"), "--set",
                  "shrink={method: error, least_squares: false, " + keys + "}"});
  ASSERT_EQ(shrunk.code, 0) << shrunk.err;
  const Ended masked = train_with(
      "criterion: error, layout: masked, update: {steps: [1]}, " + keys, "masked",
      {"--set",
       "model={layers: [flatten, {type: linear, name: fc1, out_features: 24}, relu, {type: "
       "linear, name: fc2, out_features: 20}, relu, {type: linear, name: fc3, "
       "out_features: 10}], init_from: " +
           run_dir("dense") + "}",
       "--set", "optimizer={type: sgd, lr: 0}", "--set", "train.steps=1"});
  ASSERT_EQ(masked.code, 0) << masked.err;
  const StateDict before = state("dense"), small = state("small"), after = state("masked");
  for (const std::string layer : {"fc1", "fc2"}) {
    const auto& whole = before.get<Tensor>("model/" + layer + ".bias");
    const auto& left = small.get<Tensor>("model/" + layer + ".bias");
    const auto& mask = after.get<ByteArray>("model/" + layer + ".weight_mask");
    const int64_t columns = mask.shape[1];
    std::vector<float> kept;
    for (int64_t row = 0; row < mask.shape[0]; ++row) {
      const uint8_t* bits = mask.values.data() + row * columns;
      if (std::count(bits, bits + columns, 1) > 0) kept.push_back(whole.data()[row]);
    }
    EXPECT_EQ(kept, left.to_vector()) << layer;
    EXPECT_LT(left.numel(), whole.numel());
  }
  const Config written = load_yaml(run_dir("masked") + "/config.yaml").at("sparsity");
  EXPECT_EQ(written.at("calibration").to_json(), R"({"examples": 120, "batch_size": 20})");
}

TEST_F(StructuredRun, MasksUnitsOnWhichNothingDepended) {
  write_text(config(), R"(
data: {type: glyphs, train_size: 100, test_size: 30}
model:
  - flatten
  - {type: linear, name: fc1, out_features: 12, init: zeros}
  - relu
  - {type: linear, name: fc2, out_features: 10}
optimizer: {type: sgd, lr: 0.01}
train: {steps: 6, batch_size: 10, threads: 1}
)");
  const Ended ended =
      train_with("criterion: dead, keep_at_least: 0.25, layout: masked, update: {steps: [4]}");
  ASSERT_EQ(ended.code, 0) << ended.err;
  EXPECT_EQ(lines(state(), "fc1.weight", true), 3);  // all are dead, and a quarter stays
}

TEST_F(StructuredRun, IsPlannedAndSwept) {
  const std::vector<std::string> keys{
      "--set", "sparsity={algorithm: structured, to: {flops: 0.5}, update: {freq: 2}}"};
  std::vector<std::string> plan{"plan", config(), "--json"};
  plan.insert(plan.end(), keys.begin(), keys.end());
  const Ended planned = run_lacuna(plan);
  ASSERT_EQ(planned.code, 0) << planned.err;
  EXPECT_THAT(planned.out, HasSubstr("structured"));
  std::vector<std::string> sweep{"sweep",          config(), "--run-dir",
                                 run_dir("sweep"), "--over", "sparsity.to.flops=0.5,0.3",
                                 "--jobs",         "1"};
  sweep.insert(sweep.end(), keys.begin(), keys.end());
  const Ended swept = run_lacuna(sweep);
  EXPECT_EQ(swept.code, 0) << swept.err;
}

TEST_F(StructuredRun, RefusesByName) {
  expect_refused("sparsity: 0.5, pattern: {type: nm, n: 2, m: 4}",
                 "structured takes no `pattern`: it masks whole units");
  expect_refused("sparsity: 0.5, param_filter: fc1.weight", "structured takes no `param_filter`");
  expect_refused("sparsity: 0.5, drop_fraction: 0.3", "structured takes no `drop_fraction`");
  expect_refused("to: {time: 0.5}", "training cannot target a time");
  expect_refused("to: {bytes: 0.5}", "there is no budget 'bytes'");
  expect_refused("to: {flops: 0.5}, sparsity: 0.9", "give one of them");
  expect_refused(
      "to: {flops: 0.01}",
      "flops of 0.01 cannot be reached: 0.167 remains even if every layer keeps only the "
      "fraction keep_at_least (0.1)");
  expect_refused("sparsity: 0.5, keep_at_least: 0.75", "cannot be reached");
  expect_refused("sparsity: 0.5, layers: fc2",
                 "no unit of layer 'fc2' can be removed: it is an output of the model");
  expect_refused("sparsity: 0.5, layers: fc9", "'fc9' matches no layer with removable units");
  expect_refused("sparsity: 0.5, criterion: best", "expected magnitude, saliency, error, dead");
  expect_refused("sparsity: 0.5, calibration: 40",
                 "only criterion error uses calibration examples; leave it out");
  expect_refused(
      "sparsity: 0.5, criterion: error, calibration: 1000",
      "sparsity.calibration.examples: calibration needs 1000 examples, and the training data "
      "has 90; give at most that many");
  expect_refused("criterion: dead, sparsity: 0.5", "leave it out");
  expect_refused("update: {freq: 2}", "structured needs `sparsity`");
  expect_refused("sparsity: 0.5, round_to: none", "auto, or a positive integer");
  expect_refused("criterion: dead, round_to: 8", "leave it out");
  expect_refused("to: {flops: 0.5}, round_to: 12",
                 "cannot be reached: 1 remains even if every layer keeps only the fraction "
                 "keep_at_least (0.1), and counts are multiples of 12 (round_to)");
  const Ended ended = train_with("sparsity: 0.5", "refused", {"--set", "model.4.trainable=false"});
  EXPECT_EQ(ended.code, 2);
  EXPECT_THAT(ended.err, HasSubstr("'fc2.weight', which takes it, is frozen"));
}

}  // namespace
}  // namespace lacuna::structured_test
